"""List the packages of the tree."""

from common import ROOT, report

tree = ROOT / "src" / "flowstone"
report(sorted(str(path.parent.relative_to(tree)) for path in tree.glob("**/__init__.py")))
