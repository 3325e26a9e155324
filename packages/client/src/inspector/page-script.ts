// The inspector's browser script: no framework, and all texts are inserted as text, never as HTML.
import { PAGE_EDITOR } from './page-editor.ts';
import { PAGE_PARTS } from './page-parts.ts';

const PAGE_LIST = String.raw`
  const KEPT = 200;
  const token = document.querySelector('meta[name="inspector-token"]').content;
  const list = byId('list');
  const detail = byId('detail');
  const filter = byId('filter');
  const status = byId('status');
  const method = byId('method');
  const tunnel = byId('tunnel');
  /** Newest first. */
  let requests = [];
  let many = false;
  let httpTunnels = [];
  let chosen = null;
  let shown = null;
  /** The id of the replay that was sent from here last. */
  let sent = null;
  /** Its row gets the focus as soon as it is there: the row of the original had it. */
  let following = null;
  let drawing = false;

  const textOf = (request) =>
    (request.method + ' ' + request.path + ' ' + (request.status ?? '') + ' ' + request.id + ' ' + request.tunnel + (request.replay_of ? ' replay' : '') + (request.answered_by ? ' ' + request.answered_by.reason : '')).toLowerCase();
  const hasStatus = (request, choice) => {
    if (choice === '') return true;
    return choice === 'none' ? request.status === null : request.status !== null && Math.floor(request.status / 100) === Number(choice);
  };
  const matching = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    return requests.filter((request) =>
      hasStatus(request, status.value) && (method.value === '' || request.method === method.value) && (tunnel.value === '' || request.tunnel === tunnel.value) && words.every((word) => textOf(request).includes(word)));
  };
  const isFiltered = () => filter.value.trim() !== '' || status.value !== '' || method.value !== '' || tunnel.value !== '';
  /** Those that there are, and the one that is chosen. */
  const drawOptions = (select, names) => {
    const known = [...select.options].slice(1).map((option) => option.value);
    const wanted = [...new Set([...names, ...(select.value === '' ? [] : [select.value])])].sort();
    if (JSON.stringify(wanted) === JSON.stringify(known)) return;
    const value = select.value;
    select.replaceChildren(select.options[0], ...wanted.map((name) => new Option(name)));
    select.value = value;
  };
  /** Only http tunnels have requests. One of them, and no request of another: there is nothing to choose. */
  const drawChoices = () => {
    drawOptions(method, requests.map((request) => request.method));
    drawOptions(tunnel, [...httpTunnels, ...requests.map((request) => request.tunnel)]);
    tunnel.hidden = tunnel.options.length < 3;
  };

  const rowOf = (request) => {
    const item = make('li');
    const row = make('button', 'row');
    row.type = 'button';
    row.dataset.id = request.id;
    const first = make('span', 'first');
    const path = make('span', 'path', request.path);
    path.title = request.path;
    first.append(make('b', '', request.method), path, make('span', 'badge ' + statusClass(request), statusText(request)));
    const second = make('span', 'second');
    second.append(time(request.at, CLOCK));
    if (request.duration_ms !== null) second.append(make('span', '', latencyText(request.duration_ms)));
    if (many) second.append(make('span', '', request.tunnel));
    if (request.replay_of) second.append(make('span', '', replayText(request)));
    if (request.answered_by) second.append(make('span', 'edge', request.answered_by.reason));
    row.append(first, second);
    if (request.id === chosen) row.setAttribute('aria-current', 'true');
    item.append(row);
    return item;
  };

  const drawNow = () => {
    drawing = false;
    drawChoices();
    const found = matching();
    const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.id : undefined;
    list.replaceChildren(...found.map(rowOf));
    if (focused) {
      const next = following !== null && rowElement(following);
      const row = next || rowElement(focused);
      if (next) following = null;
      if (row) row.focus({ preventScroll: true });
    }
    const all = requests.length + (requests.length === 1 ? ' request' : ' requests');
    byId('count').textContent = isFiltered() ? found.length + ' of ' + all : all;
    byId('empty').hidden = found.length > 0;
    byId('empty').textContent = requests.length > 0 ? 'No request matches.' : 'No requests yet. Open the public URL to see them here.';
  };
  /** However many events come, the list is drawn once a frame. */
  const draw = () => {
    if (drawing) return;
    drawing = true;
    requestAnimationFrame(drawNow);
  };
  const rowElement = (id) => list.querySelector('[data-id="' + id + '"]');

  /** Told in the order in which they came. */
  const take = (changes) => {
    const places = new Map(requests.map((request, index) => [request.id, index]));
    const added = [];
    for (const change of changes) {
      const place = places.get(change.id);
      if (place === undefined) added.unshift(change);
      else requests[place] = change;
    }
    requests = [...added, ...requests].slice(0, KEPT);
    draw();
    if (changes.some((change) => change.id === chosen)) load(chosen);
  };

  const factsOf = (request) => {
    const facts = make('p', 'facts');
    facts.append(make('span', 'badge ' + statusClass(request), statusText(request)));
    if (request.duration_ms !== null) facts.append(make('span', '', latencyText(request.duration_ms)));
    facts.append(time(request.at, MOMENT), make('code', '', request.id));
    if (many) facts.append(make('span', '', request.tunnel));
    if (request.user) {
      const user = make('span', 'user', 'X-Tunnel-User: ' + request.user);
      user.title = 'The signed-in visitor, set by the edge because a rule requires authentication';
      facts.append(user);
    }
    if (request.replay_of) {
      const original = make('span', '', replayText(request) + ' of ');
      original.append(button('link', request.replay_of, () => choose(request.replay_of)));
      facts.append(original);
    }
    return facts;
  };
  /** The same buttons as long as they do the same: one that is pressed, or says that it copied, outlives the news of its request. */
  const actionsOf = (request) => {
    const does = JSON.stringify([request.id, request.replay_problem, request.curl]);
    const present = detail.querySelector('.actions');
    if (present && present.does === does) return present;
    const isRefused = request.replay_problem !== null;
    const again = button('replay', 'Replay', () => replayNow(request.id));
    again.title = 'Resend to your local service';
    again.disabled = isRefused;
    const edit = button('', 'Edit and replay', () => editor.open(request, replay));
    edit.disabled = isRefused || request.is_at_edge;
    if (request.is_at_edge && !isRefused) edit.title = 'Only the edge has this request: edit it in the dashboard';
    const actions = make('div', 'actions');
    actions.does = does;
    actions.append(again, edit, copyButton(request.curl, 'Copy as cURL', 'curl'));
    return actions;
  };

  const noResponseText = (request) => {
    if (request.answered_by === null) return request.state === 'running' ? 'No response yet.' : 'No response: the connection ended first.';
    const answer = 'The edge answered with ' + request.status + ': ' + request.answered_by.reason + '.';
    if (request.request.version !== null) return answer;
    return answer + (request.is_at_edge ? ' Your service did not get this request. The edge keeps its headers and body.' : ' Your service did not get this request.');
  };
  const drawDetail = (request) => {
    shown = request;
    const scroll = detail.scrollTop;
    const hadFocus = document.activeElement && document.activeElement.classList.contains('replay');
    const said = make('p', 'said');
    said.id = 'said';
    said.setAttribute('role', 'status');
    const heading = make('h2', '', '');
    heading.append(make('b', '', request.method), ' ' + request.path);
    const note = make('p', 'note', request.replay_problem === null ? '' : "You can't replay this request: " + request.replay_problem + '.');
    note.id = 'note';
    note.setAttribute('role', 'status');
    const below = [note];
    // Of a request that did not come to this computer there is nothing else to show.
    if (request.request.version !== null) below.push(side('Request', request.request));
    if (request.response !== null) below.push(side('Response', request.response));
    else below.push(make('p', 'note', noResponseText(request)));
    if (request.state === 'aborted' && request.response !== null) note.textContent = 'The visitor disconnected early, or the response was cut off.';
    const actions = actionsOf(request);
    // What stays is never taken out: a button that leaves the page between press and release is not clicked.
    for (const part of [...detail.childNodes]) if (part !== actions) part.remove();
    if (actions.parentNode === null) detail.append(actions);
    actions.before(said, heading, factsOf(request));
    actions.after(...below);
    detail.scrollTop = scroll;
    if (hadFocus) detail.querySelector('.replay').focus({ preventScroll: true });
    // After it is in the page: what appears in it is read out.
    if (request.id === sent && request.state !== 'running') sayReplayed(request, said);
  };
  const sayReplayed = (request, said) => {
    said.className = 'said ' + statusClass(request);
    said.append('Replayed: ' + statusText(request) + ' in ' + latencyText(request.duration_ms) + '. ');
    said.append(button('link', 'View original', () => choose(request.replay_of)));
  };

  const load = async (id) => {
    const response = await fetch('/api/requests/' + id).catch(() => null);
    if (id !== chosen || response === null) return;
    if (response.ok) drawDetail(await response.json());
    else if (shown === null || shown.id !== id) detail.replaceChildren(make('p', 'empty', 'This request is no longer stored.'));
  };
  const choose = (id) => {
    if (id !== chosen) detail.scrollTop = 0;
    chosen = id;
    for (const row of list.querySelectorAll('[aria-current]')) row.removeAttribute('aria-current');
    const row = rowElement(id);
    following = null;
    if (row) { row.setAttribute('aria-current', 'true'); row.scrollIntoView({ block: 'nearest' }); }
    // Two rows would look chosen: one by its colour, and one by the ring of the focus.
    const focused = document.activeElement;
    if (focused && focused !== row && focused.classList.contains('row')) {
      if (row) row.focus({ preventScroll: true });
      else following = id;
    }
    load(id);
  };
  /** Settles with null when it is on its way, and with what is wrong otherwise. */
  const replay = async (id, edit) => {
    const headers = { 'x-inspector-token': token, 'content-type': 'application/json' };
    const response = await fetch('/api/requests/' + id + '/replay', { method: 'POST', headers, body: JSON.stringify(edit) }).catch(() => null);
    if (response === null) return 'The client does not answer.';
    const answer = await response.json();
    if (!response.ok) return answer.error;
    sent = answer.id;
    choose(answer.id);
    return null;
  };
  const replayNow = async (id) => {
    const refused = await replay(id, {});
    const note = byId('note');
    if (refused === null || !note) return;
    note.textContent = refused;
    note.className = 'note bad';
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
  for (const control of [filter, status, method, tunnel]) control.addEventListener('input', draw);
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || editor.isOpen() || event.target.tagName === 'SELECT') return;
    const typing = event.target === filter;
    const isFree = shown && shown.id === chosen && shown.replay_problem === null;
    if (event.key === 'Escape') {
      if (typing && filter.value !== '') { filter.value = ''; draw(); }
      const row = chosen && rowElement(chosen);
      (row || list).focus();
    } else if (event.key === 'ArrowDown' && (typing || list.contains(event.target) || event.target === document.body)) { event.preventDefault(); move(1); }
    else if (event.key === 'ArrowUp' && !typing && (list.contains(event.target) || event.target === document.body)) { event.preventDefault(); move(-1); }
    else if (typing) return;
    else if (event.key === '/') { event.preventDefault(); filter.focus(); filter.select(); }
    else if (event.key === 'r' && isFree) replayNow(chosen);
    else if (event.key === 'e' && isFree && !shown.is_at_edge) { event.preventDefault(); editor.open(shown, replay); }
  });

  const setLive = (state, text) => {
    byId('dot').dataset.state = state;
    byId('live').textContent = text;
  };
  const isPage = (url) => /^https?:/.test(url);
  /** A browser opens no tcp:// and no udp://: that address is text. */
  const addressOf = (url) => {
    if (!isPage(url)) return make('code', 'address', url);
    const link = make('a', '', url);
    link.href = url;
    link.rel = 'noreferrer noopener';
    link.target = '_blank';
    return link;
  };
  const drawTunnels = (tunnels) => {
    many = tunnels.length > 1;
    httpTunnels = tunnels.filter((one) => isPage(one.public_url)).map((one) => one.name);
    byId('tunnels').replaceChildren(...tunnels.map((one) => {
      const item = make('li');
      if (many) item.append(make('span', '', one.name));
      item.append(addressOf(one.public_url), copyButton(one.public_url, 'Copy ' + one.public_url), make('span', '', '\u2192 ' + one.local));
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
  events.addEventListener('hello', () => { setLive('live', 'Live'); refresh(); });
  events.addEventListener('requests', (event) => take(JSON.parse(event.data)));
  events.addEventListener('error', () => setLive('lost', 'The client does not answer. Retrying automatically.'));
`;

export const PAGE_SCRIPT = `'use strict';\n(() => {${PAGE_PARTS}${PAGE_EDITOR}${PAGE_LIST}})();\n`;
