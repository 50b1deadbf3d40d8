"""Check packages: modules compile, begin with a docstring and are of bearable size.

The package comes from the map item (akm) or from the arguments (orun).
"""

import ast
import json
import os
import sys

from common import ROOT, report

LINES = 600


def faults_of(path):
    text = path.read_text(encoding="utf-8")
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        return [f"{path.name}: {error}"]
    found = []
    if tree.body and ast.get_docstring(tree) is None:
        found.append(f"{path.name}: no docstring")
    if text.count("\n") > LINES:
        found.append(f"{path.name}: more than {LINES} lines")
    return found


def check(package):
    modules = sorted((ROOT / "src" / "flowstone" / package).glob("*.py"))
    faults = [fault for module in modules for fault in faults_of(module)]
    return {"package": package, "modules": len(modules), "faults": faults}


item = os.environ.get("AKM_ITEM")
results = [check(json.loads(item))] if item else [check(package) for package in sys.argv[1:]]
report(results[0] if item else results)
sys.exit(0 if item or not any(result["faults"] for result in results) else 1)
