"""Fold the reports of all packages into one verdict."""

from common import given, report

reports = given("steps.check.output")
report({"verdict": "fit" if all(entry and not entry["faults"] for entry in reports) else "unfit"})
