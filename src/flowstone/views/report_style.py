"""The style sheet of a run's page: light and dark, no external resource, printable."""

STYLE = """
:root{color-scheme:light dark;--bg:#fff;--fg:#1c2024;--dim:#60646c;--line:#dcdfe4;--box:#f6f7f9;
--ok:#18794e;--okbg:#ddf3e4;--bad:#b42318;--badbg:#fde3e0;--run:#0b68cb;--runbg:#dcebfe;
--skip:#7c7f86;--skipbg:#ececee;--wait:#ad7a03;--waitbg:#fbeecb}
@media(prefers-color-scheme:dark){:root{--bg:#141618;--fg:#e8eaed;--dim:#9ba1a9;--line:#33383e;--box:#1c2024;
--ok:#4cc38a;--okbg:#123524;--bad:#ff8f85;--badbg:#45201c;--run:#70b8ff;--runbg:#132f4c;
--skip:#8b9097;--skipbg:#26292d;--wait:#e5b84b;--waitbg:#3a2e0f}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1200px;padding:24px;background:var(--bg);color:var(--fg);
font:14px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
h1{font-size:22px;margin:0 0 4px}h2{font-size:16px;margin:28px 0 8px}h3{font-size:14px;margin:0}
dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 16px;margin:8px 0}dt{color:var(--dim)}dd{margin:0;
overflow-wrap:anywhere}
.badge{display:inline-block;padding:1px 8px;border-radius:10px;font-size:12px;font-weight:600}
.b-succeeded{color:var(--ok);background:var(--okbg)}.b-failed,.b-upstream_failed,.b-cancelled,.b-abandoned,.b-lost
{color:var(--bad);background:var(--badbg)}.b-open,.b-active,.b-running{color:var(--run);background:var(--runbg)}
.b-skipped,.b-pending{color:var(--skip);background:var(--skipbg)}.b-held,.b-waiting{color:var(--wait);
background:var(--waitbg)}
.scroll{overflow-x:auto;border:1px solid var(--line);border-radius:8px;padding:8px;background:var(--box)}
pre{margin:6px 0;padding:8px 10px;background:var(--box);border:1px solid var(--line);border-radius:6px;
white-space:pre-wrap;overflow-wrap:anywhere;font:12px/1.45 ui-monospace,SFMono-Regular,Menlo,monospace;max-height:480px;
overflow:auto}
pre.bad{border-color:var(--bad)}
.dim{color:var(--dim)}
details.step{border:1px solid var(--line);border-radius:8px;margin:8px 0;padding:8px 12px}
details.step>summary{cursor:pointer}
table{border-collapse:collapse;width:100%;font-size:13px}th,td{text-align:left;padding:3px 8px;
border-bottom:1px solid var(--line);vertical-align:top;overflow-wrap:anywhere}th{color:var(--dim);font-weight:500}
.graph rect{fill:var(--bg);stroke:var(--line);stroke-width:1.5}.graph text,.timeline text{fill:var(--fg);
font:12px system-ui,sans-serif}.graph .kind,.timeline .axis{fill:var(--dim);font-size:11px}
.edge{fill:none;stroke:var(--dim);stroke-width:1.2}.edge.chosen{stroke-dasharray:5 3}
.s-succeeded rect{fill:var(--okbg);stroke:var(--ok)}.s-failed rect,.s-upstream_failed rect,.s-cancelled rect
{fill:var(--badbg);stroke:var(--bad)}.s-open rect{fill:var(--runbg);stroke:var(--run)}.s-skipped rect
{fill:var(--skipbg);stroke-dasharray:4 3}.s-held rect{fill:var(--waitbg);stroke:var(--wait)}
.timeline line{stroke:var(--line)}.t-succeeded{fill:var(--ok)}.t-failed,.t-cancelled,.t-upstream_failed{fill:var(--bad)}
.t-open{fill:var(--run)}.t-pending{fill:var(--wait)}.t-wait{fill:var(--wait);opacity:.45}.t-queue{fill:var(--skip);
opacity:.35}
@media print{pre{max-height:none}}
"""
