"""Small workflow files of the three languages, as people write them."""

MAP = """\
---
type: workflow
description: Builds, then checks each item
params:
  version: { type: string, description: What to build }
  items: { type: array, items: { type: string } }
steps:
  - id: build
    unit: { exec: { command: ["sh", "-c", "echo built $AKM_PARAMS"] } }
  - id: check
    map:
      over: params.items
      unit: { exec: { command: ["sh", "-c", "echo checked $AKM_ITEM; case $AKM_ITEM in *bad*) test -e fixed;; esac"] } }
---

# Checked build

## build

Build it.

## check

Check the item.
"""

CHAIN = """\
apiVersion: orun.dev/v1
kind: Workflow
metadata: { name: chain }
inputs:
  who: { type: string, default: World, description: Who is greeted }
  token: { type: string, secret: true, default: "" }
outputs:
  said: steps.greet.outputs.text
steps:
  - name: greet
    run: [echo, "hello {{ inputs.who }}"]
    outputs: { text: stdout }
  - name: test
    needs: [greet]
    cwd: "."
    run: [sh, -c, "test -e fixed"]
"""

GITHUB = """\
name: Nightly
on: { workflow_dispatch: null }
jobs:
  nightly:
    runs-on: [self-hosted]
    steps:
      - id: greet
        run: echo hello
"""

BROKEN = """\
apiVersion: orun.dev/v1
kind: Workflow
metadata: { name: broken }
steps:
  - name: a
    needs: [zzz]
    rum: [echo]
"""

NAP = """\
apiVersion: orun.dev/v1
kind: Workflow
metadata: { name: nap }
steps:
  - name: nap
    run: [sleep, "60"]
"""
