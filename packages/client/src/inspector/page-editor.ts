// The inspector's request editor. Only changed parts are sent, so that the rest stays identical to the byte. Plain script; page-script.ts
// puts it into one closure after page-parts.ts.

export const PAGE_EDITOR = String.raw`
  const editor = (() => {
    /** Set anew for each request that is sent. */
    const SET_FOR_YOU = new Set(['content-length', 'connection', 'keep-alive', 'transfer-encoding', 'te', 'trailer', 'upgrade', 'expect']);
    const dialog = byId('editor');
    const form = byId('edit');
    const fields = form.elements;
    const problem = byId('edit-problem');
    let request = null;
    let before = null;
    let send = null;

    /** JSON on one line becomes readable, unless a number or a repeated name of it would be lost on the way. */
    const laidOut = (text) => {
      try {
        const value = JSON.parse(text);
        return JSON.stringify(value) === text ? JSON.stringify(value, null, 2) : text;
      } catch { return text; }
    };
    const draftOf = ({ method, path, request: { headers, body } }) => ({
      method,
      path,
      headers: headerLines(headers.filter(([name]) => !SET_FOR_YOU.has(name.toLowerCase()))),
      body: body.bytes === 0 ? '' : body.text === null ? null : laidOut(body.text),
    });
    const readLines = (text) => {
      const headers = [];
      for (const line of text.split('\n')) {
        if (line.trim() === '') continue;
        const colon = line.indexOf(':');
        if (colon < 1 || line.slice(0, colon).trim() === '') throw new Error("Write each header as name: value, not '" + line.trim().slice(0, 40) + "'.");
        headers.push([line.slice(0, colon).trim(), line.slice(colon + 1).trim()]);
      }
      return headers;
    };
    /** A text field knows \n alone; a form of parts needs the ends of lines that it had. */
    const withLineEnds = (text) => (request.request.body.text !== null && request.request.body.text.includes('\r\n') ? text.replace(/\r?\n/g, '\r\n') : text);

    const editOf = () => {
      const edit = {};
      const method = fields.method.value.trim().toUpperCase();
      const path = fields.path.value.trim().replace(/[^\x21-\x7e]+|#/gu, (text) => encodeURIComponent(text));
      if (!path.startsWith('/')) throw new Error('The path begins with /.');
      if (method !== before.method) edit.method = method;
      if (path !== before.path) edit.path = path;
      if (fields.headers.value !== before.headers) edit.headers = readLines(fields.headers.value);
      if (before.body !== null && fields.body.value !== before.body) edit.body = withLineEnds(fields.body.value);
      return edit;
    };

    form.addEventListener('submit', async (event) => {
      event.preventDefault();
      try {
        problem.textContent = '';
        const refused = await send(request.id, editOf());
        if (refused === null) dialog.close();
        else problem.textContent = refused;
      } catch (error) { problem.textContent = error.message; }
    });
    byId('edit-cancel').addEventListener('click', () => dialog.close());

    return {
      isOpen: () => dialog.open,
      open: (chosen, onSend) => {
        request = chosen;
        send = onSend;
        const draft = draftOf(chosen);
        for (const name of ['method', 'path', 'headers']) fields[name].value = draft[name];
        fields.body.value = draft.body ?? '';
        // As the fields have them: a browser knows one end of lines.
        before = { method: chosen.method, path: chosen.path, headers: fields.headers.value, body: draft.body === null ? null : fields.body.value };
        byId('edit-body').hidden = draft.body === null;
        byId('edit-binary').hidden = draft.body !== null;
        problem.textContent = '';
        dialog.showModal();
        fields.path.focus();
      },
    };
  })();
`;
