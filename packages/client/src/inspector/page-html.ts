// The inspector's page: structure only; page-style.ts and page-script.ts are served beside it.

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
