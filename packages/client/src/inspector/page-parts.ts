// Parts of the inspector's script: elements, texts, times and copy buttons. Plain script; page-script.ts puts it into one closure.

export const PAGE_PARTS = String.raw`
  const byId = (id) => document.getElementById(id);

  const make = (tag, className, text) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const button = (className, text, onClick) => {
    const element = make('button', className, text);
    element.type = 'button';
    element.addEventListener('click', onClick);
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
  const latencyText = (ms) => {
    if (ms === null) return '\u2026';
    if (ms < 10) return ms.toFixed(1) + ' ms';
    return ms < 1000 ? Math.round(ms) + ' ms' : (ms / 1000).toFixed(2) + ' s';
  };

  const CLOCK = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });
  const MOMENT = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });
  const UTC_MOMENT = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium', timeZone: 'UTC' });
  /** By the reader's clock, and in UTC as its title. */
  const time = (at, format) => {
    const moment = new Date(at);
    const element = make('time', '', format.format(moment));
    element.dateTime = at;
    element.title = UTC_MOMENT.format(moment) + ' UTC';
    return element;
  };

  const SHOWN_MS = 2000;
  /** Says for a moment that it did. */
  const copyButton = (text, label, className) => {
    const shown = className === undefined ? 'Copy' : label;
    const element = button(className === undefined ? 'copy' : className, shown, async () => {
      const isDone = await navigator.clipboard.writeText(text).then(() => true, () => false);
      element.textContent = isDone ? 'Copied' : 'Not copied: select it by hand';
      setTimeout(() => { element.textContent = shown; }, SHOWN_MS);
    });
    if (className === undefined) element.setAttribute('aria-label', label);
    return element;
  };

  const statusText = (request) => {
    if (request.status !== null) return String(request.status);
    return request.state === 'running' ? 'Pending' : 'No answer';
  };
  const statusClass = (request) => {
    if (request.status === null) return request.state === 'running' ? 'sr' : 's0';
    return request.state === 'aborted' ? 's5' : 's' + Math.floor(request.status / 100);
  };
  const replayText = (request) => (request.edited ? 'Edited replay' : 'Replay');

  const headerLines = (headers) => headers.map(([name, value]) => name + ': ' + value).join('\n');
  const headersTable = (headers, caption) => {
    if (headers.length === 0) return make('p', 'note', 'No headers.');
    const table = make('table');
    table.setAttribute('aria-label', caption);
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
  const pretty = (body) => {
    const text = body.text;
    if (!body.is_whole || !/^\s*[{\[]/.test(text)) return text;
    try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; }
  };

  /** Headers and body of a request or a response, each to copy. */
  const side = (title, message) => {
    const parts = document.createDocumentFragment();
    const top = make('div', 'side');
    top.append(make('h3', '', title));
    if (message.headers.length > 0) top.append(copyButton(headerLines(message.headers), 'Copy ' + title.toLowerCase() + ' headers'));
    parts.append(top, headersTable(message.headers, title + ' headers'));
    const body = message.body;
    const shown = body.text === null || body.bytes === 0 ? null : pretty(body);
    const line = make('div', 'side body');
    line.append(make('h4', '', body.bytes === 0 ? 'Body' : 'Body ' + sizeText(body.bytes)));
    if (shown !== null) line.append(copyButton(shown, 'Copy ' + title.toLowerCase() + ' body'));
    parts.append(line);
    if (shown !== null) {
      const block = make('pre', '', shown);
      block.tabIndex = 0;
      block.setAttribute('role', 'region');
      block.setAttribute('aria-label', title.toLowerCase() + ' body');
      parts.append(block);
    }
    const note = body.bytes === 0 ? 'No body.' : body.text === null ? 'No preview: it is not text.' : body.is_whole ? '' : 'The first 16 KiB.';
    if (note !== '') parts.append(make('p', 'note', note));
    return parts;
  };
`;
