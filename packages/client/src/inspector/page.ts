// The inspector's page: structure and looks; page-script.ts is served beside it.

/** The token is of this run, and base64url: it needs no escaping. */
export const pageHtml = (token: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="inspector-token" content="${token}">
<title>Tunnel inspector</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/page.css">
<script src="/page.js" defer></script>
</head>
<body>
<a class="skip" href="#list">Skip to the requests</a>
<header>
  <div class="brand"><span class="dot" id="dot" data-state="wait" aria-hidden="true"></span><h1>Inspector</h1><span id="live" role="status">connecting</span></div>
  <ul id="tunnels" aria-label="Tunnels"></ul>
</header>
<main>
  <section class="pane list" aria-label="Requests">
    <div class="tools">
      <label class="hidden" for="filter">Filter</label>
      <input id="filter" type="search" placeholder="Filter: path, method, status, tunnel" autocomplete="off" spellcheck="false">
      <span id="count" role="status"></span>
    </div>
    <div class="columns" aria-hidden="true"><span>Status</span><span>Method</span><span>Path</span><span>Time</span><span>At</span></div>
    <ol id="list" tabindex="-1"></ol>
    <p id="empty" class="empty">Nothing has come yet. Open the public URL, and each request appears here.</p>
  </section>
  <section class="pane detail" id="detail" aria-label="Details" aria-live="off" tabindex="-1">
    <p class="empty">Choose a request to see its headers, bodies and timing.</p>
    <p class="keys"><kbd>/</kbd> filter <kbd>↑</kbd> <kbd>↓</kbd> move <kbd>r</kbd> replay <kbd>Esc</kbd> back to the list</p>
  </section>
</main>
<noscript>This page needs JavaScript. It comes from your own tunnel client and talks to nobody else.</noscript>
</body>
</html>
`;

/** One sheet, light and dark, text contrast of at least 4.5 to 1 in both. */
export const PAGE_STYLE = String.raw`
:root {
  --back: #f6f7f9; --pane: #ffffff; --raised: #eef1f5; --line: #d9dee6; --text: #17202c; --soft: #52607a;
  --accent: #1d4ed8; --chosen: #e3ebfd; --ok: #14713a; --moved: #1d5fa8; --asked: #8f4700; --broken: #b3201c; --badge: #6b21a8;
  --mono: ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #0f131a; --pane: #161b24; --raised: #1e2530; --line: #2c3543; --text: #e7ebf2; --soft: #a0adc0;
    --accent: #8ab4ff; --chosen: #22304a; --ok: #6ddc97; --moved: #8ab8f5; --asked: #f2b562; --broken: #ff8f88; --badge: #d2a8ff;
  }
}
* { box-sizing: border-box; }
html, body { height: 100%; margin: 0; }
body { display: flex; flex-direction: column; background: var(--back); color: var(--text); font: 14px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.skip { position: absolute; left: 8px; top: -60px; padding: 6px 12px; background: var(--accent); color: var(--pane); border-radius: 6px; z-index: 2; }
.skip:focus { top: 8px; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: -2px; border-radius: 4px; }
header { display: flex; flex-wrap: wrap; gap: 6px 20px; align-items: center; padding: 10px 16px; border-bottom: 1px solid var(--line); background: var(--pane); }
.brand { display: flex; gap: 8px; align-items: center; color: var(--soft); }
h1 { font-size: 15px; margin: 0; color: var(--text); }
.dot { width: 9px; height: 9px; border-radius: 50%; background: var(--asked); }
.dot[data-state="live"] { background: var(--ok); }
.dot[data-state="lost"] { background: var(--broken); }
#tunnels { display: flex; flex-wrap: wrap; gap: 4px 18px; list-style: none; margin: 0; padding: 0; min-width: 0; }
#tunnels li { display: flex; gap: 6px; min-width: 0; color: var(--soft); }
#tunnels a { color: var(--accent); text-decoration: none; overflow-wrap: anywhere; }
#tunnels a:hover { text-decoration: underline; }
main { flex: 1; min-height: 0; display: grid; grid-template-columns: minmax(320px, 46%) 1fr; }
.pane { min-width: 0; min-height: 0; overflow: auto; }
.pane.list { display: flex; flex-direction: column; overflow: hidden; border-right: 1px solid var(--line); background: var(--pane); }
.tools { display: flex; gap: 10px; align-items: center; padding: 10px 12px; }
#filter { flex: 1; min-width: 0; font: inherit; color: var(--text); background: var(--back); border: 1px solid var(--line); border-radius: 6px; padding: 6px 10px; }
#filter::placeholder { color: var(--soft); opacity: 1; }
#count { color: var(--soft); font-variant-numeric: tabular-nums; white-space: nowrap; }
.columns, .row { display: grid; grid-template-columns: 52px 62px minmax(0, 1fr) 76px 70px; gap: 8px; align-items: baseline; }
.columns { padding: 4px 14px; color: var(--soft); font-size: 12px; border-bottom: 1px solid var(--line); }
.columns span:nth-child(n+4), .row span:nth-child(n+4) { text-align: right; }
#list { list-style: none; margin: 0; padding: 0; overflow: auto; flex: 1; }
.row { width: 100%; padding: 6px 14px; border: 0; border-bottom: 1px solid var(--line); background: none; color: inherit; font: 12.5px/1.4 var(--mono); text-align: left; cursor: pointer; }
.row:hover { background: var(--raised); }
.row[aria-current="true"] { background: var(--chosen); }
.row .path { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.row .soft { color: var(--soft); font-variant-numeric: tabular-nums; }
.status { font-weight: 600; font-variant-numeric: tabular-nums; }
.s2 { color: var(--ok); } .s1, .s3 { color: var(--moved); } .s4 { color: var(--asked); } .s5, .s0 { color: var(--broken); } .sr { color: var(--soft); }
.badge { color: var(--badge); border: 1px solid currentColor; border-radius: 4px; padding: 0 4px; font-size: 11px; margin-right: 6px; }
.empty { color: var(--soft); padding: 24px 16px; margin: 0; text-align: center; }
.keys { color: var(--soft); text-align: center; font-size: 12.5px; }
kbd { font: 12px var(--mono); border: 1px solid var(--line); border-bottom-width: 2px; border-radius: 4px; padding: 1px 5px; margin-left: 10px; background: var(--pane); }
.detail { padding: 14px 18px 32px; }
.top { display: flex; gap: 12px; align-items: flex-start; justify-content: space-between; }
.top h2 { margin: 0; font: 600 15px/1.45 var(--mono); overflow-wrap: anywhere; }
.replay { flex: none; font: inherit; font-weight: 600; padding: 6px 14px; border-radius: 6px; border: 1px solid var(--accent); background: var(--accent); color: var(--pane); cursor: pointer; }
.replay:disabled { background: none; color: var(--soft); border-color: var(--line); cursor: not-allowed; }
.replay:focus-visible { outline-offset: 2px; }
.note { color: var(--soft); margin: 4px 0 0; }
.note.bad { color: var(--broken); }
.facts { display: flex; flex-wrap: wrap; gap: 6px 26px; margin: 12px 0 4px; }
.facts dt { color: var(--soft); font-size: 12px; } .facts dd { margin: 0; font-variant-numeric: tabular-nums; }
.detail h3 { font-size: 13px; margin: 20px 0 6px; padding-bottom: 4px; border-bottom: 1px solid var(--line); }
.detail h4 { font-size: 12px; margin: 12px 0 4px; color: var(--soft); font-weight: 600; }
table { width: 100%; border-collapse: collapse; font: 12.5px/1.5 var(--mono); table-layout: fixed; }
th, td { text-align: left; vertical-align: top; padding: 2px 8px 2px 0; overflow-wrap: anywhere; font-weight: 400; }
th { width: 30%; color: var(--soft); }
pre { margin: 0; padding: 10px 12px; background: var(--pane); border: 1px solid var(--line); border-radius: 6px; font: 12.5px/1.5 var(--mono); white-space: pre-wrap; overflow-wrap: anywhere; max-height: 60vh; overflow: auto; }
@media (max-width: 860px) {
  main { grid-template-columns: 1fr; grid-template-rows: 45% 1fr; }
  .pane.list { border-right: 0; border-bottom: 1px solid var(--line); }
  .columns, .row { grid-template-columns: 44px 54px minmax(0, 1fr) 70px; }
  .columns span:nth-child(5), .row span:nth-child(5) { display: none; }
}
@media (prefers-reduced-motion: no-preference) { .row { transition: background 80ms; } }
`;
