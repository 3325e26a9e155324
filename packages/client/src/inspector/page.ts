// The inspector's HTML. page-style.ts holds the styles, page-script.ts the behavior; both are served separately.

/** Returns the page. The token belongs to this run and is base64url, so it needs no escaping. */
export const pageHtml = (token: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="inspector-token" content="${token}">
<title>Hatchway inspector</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/page.css">
<script src="/page.js" defer></script>
</head>
<body>
<a class="skip" href="#list">Skip to the requests</a>
<header>
  <div class="brand"><span class="dot" id="dot" data-state="wait" aria-hidden="true"></span><h1>Inspector</h1><span id="live" role="status">Connecting</span></div>
  <ul id="tunnels" aria-label="Tunnels"></ul>
</header>
<main>
  <section class="pane list" aria-label="Requests">
    <div class="tools">
      <input id="filter" type="search" aria-label="Filter requests" placeholder="Filter by path or id" autocomplete="off" spellcheck="false">
      <select id="status" aria-label="Status">
        <option value="">Any status</option><option value="2">2xx</option><option value="3">3xx</option><option value="4">4xx</option><option value="5">5xx</option><option value="none">No answer</option>
      </select>
      <select id="method" aria-label="Method"><option value="">Any method</option></select>
      <select id="tunnel" aria-label="Tunnel" hidden><option value="">Any tunnel</option></select>
    </div>
    <p id="count" role="status"></p>
    <ol id="list" tabindex="-1"></ol>
    <p id="empty" class="empty">No requests yet. Open the public URL to see them here.</p>
  </section>
  <section class="pane detail" id="detail" aria-label="Details" aria-live="off" tabindex="-1">
    <p class="empty">Select a request</p>
    <p class="keys"><kbd>/</kbd> filter <kbd>↑</kbd> <kbd>↓</kbd> move <kbd>r</kbd> replay <kbd>e</kbd> edit <kbd>Esc</kbd> back to the list</p>
  </section>
</main>
<dialog id="editor" aria-labelledby="editor-title">
  <form id="edit">
    <h2 id="editor-title">Edit and replay</h2>
    <div class="fields">
      <div class="line">
        <label>Method<input name="method" autocomplete="off" autocapitalize="none" spellcheck="false" required></label>
        <label>Path<input name="path" autocomplete="off" autocapitalize="none" spellcheck="false" required></label>
      </div>
      <label>Headers<textarea name="headers" rows="7" autocapitalize="none" spellcheck="false" aria-describedby="edit-hint"></textarea></label>
      <p class="note" id="edit-hint">One per line. [redacted] keeps the original value.</p>
      <label id="edit-body">Body<textarea name="body" rows="9" autocapitalize="none" spellcheck="false"></textarea></label>
      <p class="note" id="edit-binary" hidden>The body is not text. It is sent unchanged.</p>
      <p class="note bad" id="edit-problem" role="alert"></p>
    </div>
    <div class="foot"><button type="button" id="edit-cancel">Cancel</button><button type="submit" class="primary">Send</button></div>
  </form>
</dialog>
<noscript>This page needs JavaScript. The page is served by your own tunnel client and connects only to it.</noscript>
</body>
</html>
`;
