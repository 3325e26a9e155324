// What the inspector's page can ask for. Who may ask is the gate's matter, and was decided before.
import { Fault } from '@tunnel/errors';
import { DialFailed } from '../forward/dial-local.ts';
import type { RequestLog } from '../requests/request-log.ts';
import type { RequestRecord } from '../requests/request-record.ts';
import type { Tunnel } from '../tunnel.ts';
import { pageHtml } from './page-html.ts';
import { PAGE_SCRIPT } from './page-script.ts';
import { PAGE_STYLE } from './page-style.ts';
import { presentDetail, presentSummary, presentTunnel } from './present.ts';

export interface RouteDeps {
  readonly token: string;
  readonly log: RequestLog;
  readonly tunnels: () => readonly Tunnel[];
  readonly replay: (record: RequestRecord) => Promise<string>;
}

export type Answer =
  | { readonly kind: 'text'; readonly status: number; readonly type: string; readonly text: string }
  | { readonly kind: 'events' };

const text = (type: string, body: string): Answer => ({
  kind: 'text',
  status: 200,
  type: `${type}; charset=utf-8`,
  text: body,
});

export const json = (status: number, value: object): Answer => ({
  kind: 'text',
  status,
  type: 'application/json; charset=utf-8',
  text: JSON.stringify(value),
});

const NOT_FOUND = json(404, { error: 'nothing here' });

export const answerTo = async (method: string, path: string, deps: RouteDeps): Promise<Answer> => {
  if (method === 'POST') return replayOf(path, deps);
  switch (path) {
    case '/':
      return text('text/html', pageHtml(deps.token));
    case '/page.css':
      return text('text/css', PAGE_STYLE);
    case '/page.js':
      return text('text/javascript', PAGE_SCRIPT);
    case '/api/events':
      return { kind: 'events' };
    case '/api/requests':
      return json(200, { tunnels: deps.tunnels().map(presentTunnel), requests: deps.log.list().map(presentSummary) });
    default: {
      const record = recordAt(path, '', deps);
      return record === undefined ? NOT_FOUND : json(200, await presentDetail(record));
    }
  }
};

const replayOf = async (path: string, deps: RouteDeps): Promise<Answer> => {
  const record = recordAt(path, '/replay', deps);
  if (record === undefined) return NOT_FOUND;
  if (record.replayProblem !== null) return json(409, { error: `it cannot be sent again: ${record.replayProblem}` });
  try {
    return json(202, { id: await deps.replay(record) });
  } catch (error) {
    if (error instanceof DialFailed) return json(502, { error: error.fault.message });
    if (error instanceof Fault) return json(409, { error: error.message });
    throw error;
  }
};

const recordAt = (path: string, tail: string, { log }: RouteDeps): RequestRecord | undefined => {
  const id = /^\/api\/requests\/(req_\d{1,15})(\/replay)?$/.exec(path);
  return id === null || (id[2] ?? '') !== tail ? undefined : log.get(id[1] ?? '');
};
