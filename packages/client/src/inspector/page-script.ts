// The inspector's behaviour in the browser: plain script, no framework, every text put in as text. Runs nowhere else.

export const PAGE_SCRIPT = String.raw`'use strict';
(() => {
  const KEPT = 200;
  const token = document.querySelector('meta[name="inspector-token"]').content;
  const byId = (id) => document.getElementById(id);
  const list = byId('list');
  const detail = byId('detail');
  const filter = byId('filter');
  /** Newest first. */
  let requests = [];
  let many = false;
  let chosen = null;
  let shown = null;
  let drawing = false;

  const make = (tag, className, text) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  };

  const sizeText = (bytes) => {
    if (bytes < 1000) return bytes + ' B';
    const units = ['kB', 'MB', 'GB', 'TB'];
    let value = bytes / 1000;
    let unit = 0;
    while (value >= 999.5 && unit < units.length - 1) { value /= 1000; unit += 1; }
    return value.toFixed(value < 99.95 ? 1 : 0) + ' ' + units[unit];
  };
  const timeText = (ms) => {
    if (ms === null) return '…';
    if (ms < 1000) return (ms < 10 ? ms.toFixed(1) : Math.round(ms)) + ' ms';
    return ms < 60000 ? (ms / 1000).toFixed(1) + ' s' : Math.floor(ms / 60000) + ' min ' + Math.round((ms % 60000) / 1000) + ' s';
  };
  const statusText = (request) => {
    if (request.status !== null) return String(request.status) + (request.state === 'aborted' ? ' cut' : '');
    return request.state === 'running' ? '…' : 'none';
  };
  const statusClass = (request) => {
    if (request.status === null) return request.state === 'running' ? 'sr' : 's0';
    return request.state === 'aborted' ? 's5' : 's' + Math.floor(request.status / 100);
  };
  const matches = (request, words) => {
    const text = (request.method + ' ' + request.path + ' ' + statusText(request) + ' ' + request.tunnel + (request.replay_of ? ' replay' : '')).toLowerCase();
    return words.every((word) => text.includes(word));
  };

  const rowOf = (request) => {
    const item = make('li');
    const row = make('button', 'row');
    row.type = 'button';
    row.dataset.id = request.id;
    row.append(make('span', 'status ' + statusClass(request), statusText(request)), make('span', '', request.method));
    const path = make('span', 'path');
    path.title = request.path;
    if (request.replay_of) path.append(make('span', 'badge', 'replay'));
    if (many) path.append(make('span', 'soft', request.tunnel + ' '));
    path.append(request.path);
    row.append(path, make('span', 'soft', timeText(request.duration_ms)), make('span', 'soft', new Date(request.at).toLocaleTimeString([], { hour12: false })));
    if (request.id === chosen) row.setAttribute('aria-current', 'true');
    item.append(row);
    return item;
  };

  const drawNow = () => {
    drawing = false;
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = requests.filter((request) => matches(request, words));
    const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.id : undefined;
    list.replaceChildren(...found.map(rowOf));
    if (focused) { const row = rowElement(focused); if (row) row.focus({ preventScroll: true }); }
    byId('count').textContent = words.length === 0 ? requests.length + (requests.length === 1 ? ' request' : ' requests') : found.length + ' of ' + requests.length;
    byId('empty').hidden = found.length > 0;
    byId('empty').textContent = requests.length > 0 ? 'No request matches the filter.' : 'Nothing has come yet. Open the public URL, and each request appears here.';
  };
  /** However many events come, the list is drawn once a frame. */
  const draw = () => {
    if (drawing) return;
    drawing = true;
    requestAnimationFrame(drawNow);
  };
  const rowElement = (id) => list.querySelector('[data-id="' + id + '"]');

  const take = (changes) => {
    const known = new Map(requests.map((request) => [request.id, request]));
    for (const change of changes) known.set(change.id, change);
    requests = [...known.values()].sort((a, b) => Number(b.id.slice(4)) - Number(a.id.slice(4))).slice(0, KEPT);
    draw();
    if (changes.some((change) => change.id === chosen)) load(chosen);
  };

  const headersTable = (headers) => {
    const table = make('table');
    const body = make('tbody');
    for (const [name, value] of headers) {
      const line = make('tr');
      const head = make('th', '', name);
      head.scope = 'row';
      line.append(head, make('td', '', value));
      body.append(line);
    }
    table.append(body);
    return table;
  };
  const bodyBlock = (body) => {
    if (body.bytes === 0) return make('p', 'note', 'No body.');
    if (body.text === null) return make('p', 'note', sizeText(body.bytes) + ' that are not text.');
    const block = make('pre', '', pretty(body));
    block.tabIndex = 0;
    if (body.is_whole) return block;
    const both = document.createDocumentFragment();
    both.append(block, make('p', 'note', 'The beginning of ' + sizeText(body.bytes) + '.'));
    return both;
  };
  const pretty = (body) => {
    const text = body.text;
    if (!body.is_whole || !/^\s*[{\[]/.test(text)) return text;
    try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; }
  };
  const fact = (facts, name, value) => {
    const pair = make('div');
    pair.append(make('dt', '', name), make('dd', '', value));
    facts.append(pair);
  };

  const drawDetail = (request) => {
    shown = request;
    const scroll = detail.scrollTop;
    const top = make('div', 'top');
    top.append(make('h2', '', request.method + ' ' + request.path));
    const button = make('button', 'replay', 'Replay');
    button.type = 'button';
    button.disabled = request.replay_problem !== null;
    button.addEventListener('click', () => replay(request.id));
    top.append(button);
    const note = make('p', 'note', request.replay_problem === null ? '' : 'It cannot be sent again: ' + request.replay_problem + '.');
    note.id = 'note';
    note.setAttribute('role', 'status');
    const facts = make('dl', 'facts');
    fact(facts, 'Status', request.response === null ? statusText(request) : statusText(request) + ' ' + request.response.reason);
    fact(facts, 'Time', timeText(request.duration_ms));
    fact(facts, 'At', new Date(request.at).toLocaleString());
    fact(facts, 'Request body', sizeText(request.request_bytes));
    fact(facts, 'Response body', sizeText(request.response_bytes));
    fact(facts, 'Tunnel', request.tunnel);
    if (request.replay_of) fact(facts, 'Replay of', request.replay_of);
    const parts = [top, note, facts, make('h3', '', 'Request'), headersTable(request.request.headers), make('h4', '', 'Body'), bodyBlock(request.request.body)];
    if (request.response === null) parts.push(make('h3', '', 'Response'), make('p', 'note', request.state === 'running' ? 'It has not come yet.' : 'None came: the connection ended first.'));
    else parts.push(make('h3', '', 'Response'), headersTable(request.response.headers), make('h4', '', 'Body'), bodyBlock(request.response.body));
    const hadFocus = document.activeElement && document.activeElement.classList.contains('replay');
    detail.replaceChildren(...parts);
    detail.scrollTop = scroll;
    if (hadFocus) button.focus({ preventScroll: true });
  };

  const load = async (id) => {
    const response = await fetch('/api/requests/' + id).catch(() => null);
    if (id !== chosen || response === null) return;
    if (response.ok) drawDetail(await response.json());
    else if (shown === null || shown.id !== id) detail.replaceChildren(make('p', 'empty', 'This request is not kept any more.'));
  };
  const choose = (id) => {
    if (id !== chosen) detail.scrollTop = 0;
    chosen = id;
    for (const row of list.querySelectorAll('[aria-current]')) row.removeAttribute('aria-current');
    const row = rowElement(id);
    if (row) row.setAttribute('aria-current', 'true');
    load(id);
  };
  const say = (text, isBad) => {
    const note = byId('note');
    if (!note) return;
    note.textContent = text;
    note.className = isBad ? 'note bad' : 'note';
  };
  const replay = async (id) => {
    const response = await fetch('/api/requests/' + id + '/replay', { method: 'POST', headers: { 'x-inspector-token': token } }).catch(() => null);
    if (response === null) return say('The client does not answer.', true);
    const answer = await response.json();
    if (response.ok) say('Sent again as ' + answer.id + '.', false);
    else say(answer.error, true);
  };

  const move = (by) => {
    const rows = [...list.querySelectorAll('.row')];
    if (rows.length === 0) return;
    const at = rows.findIndex((row) => row.dataset.id === chosen);
    const row = rows[at === -1 ? 0 : Math.min(rows.length - 1, Math.max(0, at + by))];
    row.focus();
    choose(row.dataset.id);
  };
  list.addEventListener('click', (event) => {
    const row = event.target.closest('.row');
    if (row) choose(row.dataset.id);
  });
  filter.addEventListener('input', draw);
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target === filter;
    if (event.key === 'Escape') {
      if (typing && filter.value !== '') { filter.value = ''; draw(); }
      const row = chosen && rowElement(chosen);
      (row || list).focus();
    } else if (event.key === 'ArrowDown' && (typing || list.contains(event.target) || event.target === document.body)) { event.preventDefault(); move(1); }
    else if (event.key === 'ArrowUp' && !typing && (list.contains(event.target) || event.target === document.body)) { event.preventDefault(); move(-1); }
    else if (typing) return;
    else if (event.key === '/') { event.preventDefault(); filter.focus(); filter.select(); }
    else if (event.key === 'r' && shown && shown.id === chosen && shown.replay_problem === null) replay(chosen);
  });

  const setLive = (state, text) => {
    byId('dot').dataset.state = state;
    byId('live').textContent = text;
  };
  const drawTunnels = (tunnels) => {
    many = tunnels.length > 1;
    byId('tunnels').replaceChildren(...tunnels.map((tunnel) => {
      const item = make('li');
      if (many) item.append(make('span', '', tunnel.name));
      const link = make('a', '', tunnel.public_url);
      if (/^https?:/.test(tunnel.public_url)) { link.href = tunnel.public_url; link.rel = 'noreferrer noopener'; link.target = '_blank'; }
      item.append(link, make('span', '', '→ ' + tunnel.local));
      return item;
    }));
  };
  const refresh = async () => {
    const response = await fetch('/api/requests').catch(() => null);
    if (response === null || !response.ok) return;
    const answer = await response.json();
    drawTunnels(answer.tunnels);
    requests = answer.requests;
    draw();
  };

  const events = new EventSource('/api/events');
  // After a pause everything is read anew: what was missed is in the list.
  events.addEventListener('hello', () => { setLive('live', 'live'); refresh(); });
  events.addEventListener('requests', (event) => take(JSON.parse(event.data)));
  events.addEventListener('error', () => setLive('lost', 'the client is gone or away; trying again'));
})();
`;
