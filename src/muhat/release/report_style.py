"""The style of a report: light and dark, telephone, desk and paper."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark; --ink: #1b2530; --quiet: #5a6774; --page: #ffffff;
  --card: #f3f6f9; --line: #d8dfe6; --accent: #1f5fce; --bar: #bcd2f7; --dot: #ffffff;
  --warn: #8a4b00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ebf0; --quiet: #a2afbb; --page: #12171d;
  --card: #1b222a; --line: #36414c; --accent: #7aaeff; --bar: #2b4674; --dot: #12171d;
  --warn: #f0b849; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-behavior: smooth; }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem 1.25rem 3rem; background: var(--page);
  color: var(--ink); font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  overflow-wrap: anywhere; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: .5rem 0 .8rem; letter-spacing: -.01em; }
h2 { font-size: 1.3rem; line-height: 1.3; margin: 0 0 .9rem; }
h3 { font-size: 1rem; font-weight: 600; margin: 1rem 0 .3rem; }
p, .notes, section > ul { max-width: 46rem; }
a { color: var(--accent); }
header > p { font-size: 1.05rem; }
.quiet, footer { color: var(--quiet); font-size: .9rem; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .6rem;
  margin: 1.4rem 0; }
.facts div { background: var(--card); border-radius: .5rem; padding: .7rem .9rem; }
.facts dt { color: var(--quiet); font-size: .85rem; }
.facts dd { margin: .1rem 0 0; font-weight: 600; }
nav ol { columns: 17rem; column-gap: 2rem; padding-left: 1.4rem; }
nav li { break-inside: avoid; margin: .15rem 0; }
section { border-top: 1px solid var(--line); margin-top: 2.2rem; padding-top: 1.4rem; }
figure { margin: 0 0 1.2rem; }
.chart + .chart { margin-top: .8rem; }
.chart { display: grid; grid-template-columns: minmax(5rem, max-content) minmax(0, 1fr);
  column-gap: .9rem; align-items: center; }
.mark { font-size: .9rem; line-height: 1.25; text-align: right; max-width: 16rem; padding: 1px 0; }
.strip { width: 100%; height: 24px; display: block; align-self: stretch; min-height: 100%;
  overflow: visible; }
.axis { width: 100%; height: 20px; display: block; overflow: visible;
  border-top: 1px solid var(--line); }
.axis text { fill: var(--quiet); font-size: 12px; text-anchor: middle;
  font-variant-numeric: tabular-nums; }
.axis .last { text-anchor: end; } .axis .first { text-anchor: start; }
.grid { stroke: var(--line); stroke-width: 1; } .zero { stroke: var(--quiet); stroke-width: 1; }
.bar { stroke: var(--bar); stroke-width: 16; }
.both { stroke: var(--accent); stroke-width: 1.6; }
.noise { stroke: var(--accent); stroke-width: 5; }
.strip path { fill: var(--accent); }
.dot { fill: var(--dot); stroke: var(--ink); stroke-width: 1.6; }
.few { dominant-baseline: central; fill: var(--quiet); font-size: 13px; font-style: italic; }
figcaption { display: flex; flex-wrap: wrap; gap: .1rem 1.2rem; font-size: .85rem;
  color: var(--quiet); margin-top: .3rem; }
.key { display: inline-flex; align-items: center; gap: .4rem; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: .5rem;
  margin: .6rem 0; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; line-height: 1.4;
  font-variant-numeric: tabular-nums; overflow-wrap: normal; }
th, td { padding: .4rem .8rem; text-align: left; vertical-align: baseline;
  border-bottom: 1px solid var(--line); }
tr:last-child td { border-bottom: 0; }
th { background: var(--card); font-weight: 600; }
td:not(.n) { min-width: 5.5rem; }
.n { text-align: right; white-space: nowrap; }
th.n { white-space: normal; }
.notes { color: var(--quiet); font-size: .9rem; padding-left: 1.1rem; margin: .8rem 0 0; }
.notes li { margin: .25rem 0; }
summary { cursor: pointer; color: var(--accent); margin: .5rem 0; }
.terms { margin: 0; }
.terms > div { display: grid; grid-template-columns: 13rem minmax(0, 1fr); gap: .2rem 1.2rem;
  padding: .55rem 0; border-bottom: 1px solid var(--line); }
.terms > div:last-child { border-bottom: 0; }
.terms dt { font-weight: 600; } .terms dd { margin: 0; max-width: 44rem; }
.caution { color: var(--warn); font-weight: 600; }
pre { background: var(--card); border-radius: .5rem; padding: 1rem; overflow-x: auto;
  font-size: .85rem; line-height: 1.45; overflow-wrap: normal; }
code { font-size: .85em; }
footer { margin-top: 2.5rem; }
@media (max-width: 40rem) {
  body { padding: 1rem 1rem 2rem; } h1 { font-size: 1.5rem; }
  .chart:not(.short) { grid-template-columns: minmax(0, 1fr); }
  .chart:not(.short) .mark { text-align: left; max-width: none; padding-top: .3rem; }
  .short { grid-template-columns: minmax(3rem, max-content) minmax(0, 1fr); }
  .strip { min-height: 24px; }
  .terms > div { grid-template-columns: minmax(0, 1fr); }
}
@media print {
  body { max-width: none; padding: 0; } figure, tr, .terms > div { break-inside: avoid; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""
