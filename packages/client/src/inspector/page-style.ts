// The inspector's style sheet in the dashboard's colors, light and dark, with a text contrast of at least 4.5 to 1.

export const PAGE_STYLE = String.raw`
:root {
  color-scheme: light dark;
  --back: light-dark(#fafafb, #0b0d11); --pane: light-dark(#ffffff, #12151a); --raised: light-dark(#f3f4f6, #1a1e25);
  --line: light-dark(#e3e5ea, #262b34); --edge: light-dark(#868e9b, #6a7382); --text: light-dark(#15181e, #eceef2); --soft: light-dark(#59616d, #9ba4b2);
  --accent: light-dark(#3552cf, #93a8ff); --strong: light-dark(#2a43b0, #b0c0ff); --chosen: light-dark(#eef1fe, #1c2342); --on-accent: light-dark(#ffffff, #0b1024);
  --ok: light-dark(#12703f, #57cf95); --ok-back: light-dark(#e6f5ec, #11291d); --asked: light-dark(#805300, #e9b04c); --asked-back: light-dark(#fdf3dc, #2c2210);
  --broken: light-dark(#b42525, #ff8f8a); --broken-back: light-dark(#fdecec, #34171a);
  --mono: ui-monospace, "SF Mono", SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace;
}
* { box-sizing: border-box; }
html, body { height: 100%; margin: 0; }
body { display: flex; flex-direction: column; background: var(--back); color: var(--text); font: 14px/22px ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; font-variant-numeric: tabular-nums; }
.skip { position: absolute; left: 8px; top: -60px; padding: 6px 12px; background: var(--accent); color: var(--on-accent); border-radius: 6px; z-index: 2; }
.skip:focus { top: 8px; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
header { display: flex; flex-wrap: wrap; gap: 6px 20px; align-items: center; padding: 10px 20px; border-bottom: 1px solid var(--line); background: var(--pane); }
.brand { display: flex; gap: 8px; align-items: center; color: var(--soft); }
h1 { font-size: 16px; margin: 0; color: var(--text); letter-spacing: -0.01em; }
.dot { width: 9px; height: 9px; border-radius: 50%; background: var(--asked); }
.dot[data-state="live"] { background: var(--ok); }
.dot[data-state="lost"] { background: var(--broken); }
#tunnels { display: flex; flex-wrap: wrap; gap: 4px 18px; list-style: none; margin: 0; padding: 0; min-width: 0; }
#tunnels li { display: flex; flex-wrap: wrap; align-items: center; gap: 2px 6px; min-width: 0; color: var(--soft); }
a { color: var(--accent); text-decoration: none; overflow-wrap: anywhere; border-radius: 2px; }
a:hover { text-decoration: underline; }
.address { color: var(--text); overflow-wrap: anywhere; }
main { flex: 1; min-height: 0; display: grid; grid-template-columns: minmax(320px, 2fr) minmax(0, 3fr); }
.pane { min-width: 0; min-height: 0; overflow: auto; background: var(--pane); }
.pane.list { display: flex; flex-direction: column; overflow: hidden; border-right: 1px solid var(--line); }
.tools { display: flex; flex-wrap: wrap; gap: 8px; padding: 10px 20px; border-bottom: 1px solid var(--line); }
input, select, textarea { font: inherit; color: var(--text); background: var(--pane); border: 1px solid var(--edge); border-radius: 6px; }
input, select { height: 36px; padding: 0 12px; }
input:hover, select:hover, textarea:hover { border-color: var(--text); }
input:focus-visible, select:focus-visible, textarea:focus-visible { outline-offset: 0; border-color: var(--accent); }
::placeholder { color: var(--soft); opacity: 1; }
#filter { flex: 1 1 8rem; min-width: 0; }
#count { color: var(--soft); margin: 0; padding: 4px 20px; font-size: 13px; }
#list { list-style: none; margin: 0; padding: 0; overflow: auto; flex: 1; }
#list:focus { outline: none; }
.row { display: block; width: 100%; padding: 10px 20px; border: 0; border-top: 1px solid var(--line); background: none; color: inherit; font: inherit; text-align: left; cursor: pointer; }
.row:hover { background: var(--back); }
.row:focus-visible { outline-offset: -2px; }
.row[aria-current="true"] { background: var(--chosen); }
.first, .second { display: flex; gap: 8px; align-items: center; }
.first { font: 13px/20px var(--mono); }
.first b { font-weight: 500; }
.path { flex: 1; min-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.second { gap: 12px; margin-top: 2px; color: var(--soft); font-size: 13px; line-height: 20px; }
.badge { flex: none; border-radius: 99px; padding: 2px 8px; font: 500 12px/16px ui-sans-serif, system-ui, sans-serif; background: var(--raised); color: var(--soft); white-space: nowrap; }
.s2 { background: var(--ok-back); color: var(--ok); } .s1, .s3 { background: var(--chosen); color: var(--accent); }
.s4 { background: var(--asked-back); color: var(--asked); } .s5, .s0 { background: var(--broken-back); color: var(--broken); }
.empty { color: var(--soft); padding: 24px 20px; margin: 0; text-align: center; }
.keys { color: var(--soft); text-align: center; font-size: 13px; }
kbd { font: 12px var(--mono); border: 1px solid var(--line); border-bottom-width: 2px; border-radius: 4px; padding: 1px 5px; margin-left: 10px; background: var(--pane); }
.detail { padding: 20px; }
.detail:focus { outline: none; }
.detail h2 { margin: 0; font: 400 14px/22px var(--mono); overflow-wrap: anywhere; }
.facts .user { overflow-wrap: anywhere; }
.facts { display: flex; flex-wrap: wrap; gap: 4px 12px; align-items: center; margin: 6px 0 0; color: var(--soft); font-size: 13px; }
code { font-family: var(--mono); }
.actions, .foot { display: flex; flex-wrap: wrap; gap: 8px; }
.actions { margin-top: 16px; }
button { font: inherit; color: inherit; cursor: pointer; }
.actions button, .foot button { height: 32px; padding: 0 10px; border: 1px solid var(--line); border-radius: 6px; background: var(--pane); font-weight: 500; font-size: 13px; }
.actions button:hover, .foot button:hover { background: var(--raised); border-color: var(--edge); }
button:disabled { cursor: not-allowed; opacity: 0.55; }
.foot .primary { background: var(--accent); border-color: transparent; color: var(--on-accent); }
.foot .primary:hover { background: var(--strong); }
.copy { flex: none; height: 28px; padding: 0 8px; border: 0; border-radius: 6px; background: none; color: var(--soft); font-size: 13px; }
.copy:hover { background: var(--raised); color: var(--text); }
.link { border: 0; padding: 0; background: none; color: var(--accent); text-decoration: underline; text-underline-offset: 2px; font: inherit; border-radius: 2px; }
.note { color: var(--soft); margin: 8px 0 0; font-size: 13px; }
.note:empty { display: none; }
.note.bad { color: var(--broken); }
.said { margin: 0 0 16px; padding: 10px 14px; border: 1px solid var(--line); border-radius: 6px; background: var(--raised); }
.said:empty { display: none; }
.said.s2 { background: var(--ok-back); color: var(--text); } .said.s3 { background: var(--chosen); color: var(--text); } .said.s4 { background: var(--asked-back); color: var(--text); } .said.s5, .said.s0 { background: var(--broken-back); color: var(--text); }
.side { display: flex; align-items: center; justify-content: space-between; gap: 16px; margin-top: 24px; }
.side h3 { font-size: 14px; margin: 0; }
.side h4 { font-size: 13px; margin: 0; color: var(--soft); font-weight: 400; }
.side.body { margin-top: 12px; }
table { width: 100%; border-collapse: collapse; font: 13px/20px var(--mono); table-layout: fixed; }
tr { border-bottom: 1px solid var(--line); }
tr:last-child { border: 0; }
th, td { text-align: left; vertical-align: top; padding: 4px 12px 4px 0; overflow-wrap: anywhere; font-weight: 400; }
th { width: 40%; color: var(--soft); }
pre { margin: 0; padding: 12px; background: var(--raised); border: 1px solid var(--line); border-radius: 6px; font: 13px/20px var(--mono); white-space: pre-wrap; overflow-wrap: anywhere; max-height: 20rem; overflow: auto; }
dialog { width: min(48rem, calc(100vw - 2rem)); max-height: calc(100vh - 2rem); padding: 0; border: 1px solid var(--line); border-radius: 12px; background: var(--pane); color: var(--text); overflow: auto; }
dialog::backdrop { background: rgb(0 0 0 / 0.45); }
dialog h2 { margin: 0; padding: 20px 20px 0; font-size: 16px; }
.fields { display: grid; gap: 16px; padding: 12px 20px 20px; }
.fields .note { margin-top: -10px; }
.fields .line { display: grid; gap: 16px; grid-template-columns: 8rem minmax(0, 1fr); }
label { font-weight: 500; display: block; }
label input, label textarea { display: block; width: 100%; margin-top: 6px; font: 13px/20px var(--mono); }
textarea { padding: 8px 12px; white-space: pre; resize: vertical; }
.foot { position: sticky; bottom: 0; justify-content: flex-end; padding: 12px 20px; border-top: 1px solid var(--line); background: var(--back); }
[hidden] { display: none !important; }
@media (max-width: 860px) {
  main { grid-template-columns: 1fr; grid-template-rows: minmax(12rem, 45%) 1fr; }
  .pane.list { border-right: 0; border-bottom: 1px solid var(--line); }
  .tools, .row, #count, .detail, header { padding-left: 16px; padding-right: 16px; }
}
@media (max-width: 520px) {
  #filter { flex-basis: 100%; }
  .tools select { flex: 1; min-width: 0; }
  .fields .line { grid-template-columns: 1fr; }
}
@media (hover: none) and (pointer: coarse), (max-width: 520px) { .keys { display: none; } }
@media (prefers-reduced-motion: no-preference) { .row { transition: background 80ms; } }
`;
