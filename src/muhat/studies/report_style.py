"""How the page of all studies looks: in the light and in the dark, on a screen and a telephone."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark; --ink: #1f2933; --quiet: #5b6773; --page: #ffffff;
  --card: #f4f6f8; --line: #d9dfe5; --link: #0b5cad;
  --yes: #00664a; --part: #8a5a00; --no: #a33000; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9ee; --quiet: #a3afba; --page: #14181d;
  --card: #1d232a; --line: #36404a; --link: #7ab8f5;
  --yes: #4cc9a0; --part: #f0b849; --no: #ff8f66; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 68rem; padding: 1rem; background: var(--page); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  overflow-wrap: break-word; }
h1 { font-size: 1.6rem; line-height: 1.25; } h2 { font-size: 1.3rem; line-height: 1.3; }
a { color: var(--link); }
p { max-width: 46rem; }
.paper, .small { color: var(--quiet); font-size: .9rem; }
nav ul { list-style: none; padding: 0; }
nav li { border-top: 1px solid var(--line); padding: .5rem 0; display: flex; gap: .7rem;
  align-items: baseline; justify-content: space-between; flex-wrap: wrap; }
.badge { border: 1px solid currentColor; border-radius: 1rem; padding: .05rem .6rem;
  font-size: .8rem; font-weight: 600; white-space: nowrap; }
.yes { color: var(--yes); } .in-part { color: var(--part); } .no { color: var(--no); }
.not-tested { color: var(--quiet); }
section { border-top: 2px solid var(--line); margin-top: 2.2rem; padding-top: .4rem; }
.panels { display: grid; gap: .8rem; grid-template-columns: repeat(2, minmax(0, 1fr));
  margin: 1rem 0; }
.panels.one { grid-template-columns: minmax(0, 46rem); }
@media (max-width: 46rem) { .panels { grid-template-columns: minmax(0, 1fr); } }
.panels img { display: block; width: 100%; height: auto; background: #fff; border-radius: .4rem;
  border: 1px solid var(--line); }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: .4rem;
  max-height: 34rem; }
table { border-collapse: collapse; font-size: .82rem; line-height: 1.4; }
th, td { padding: .3rem .6rem; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); }
th { position: sticky; top: 0; background: var(--card); white-space: nowrap; }
td.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
td.long { min-width: 15rem; }
summary { cursor: pointer; color: var(--link); margin: .6rem 0; }
code { font-size: .85em; }
"""
