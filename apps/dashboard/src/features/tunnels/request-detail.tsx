// One captured request whole: what came, what went back, how long it took, and sending it again.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { CapturedRequest, TunnelLogEntry } from '@tunnel/contract';
import { useApi } from '../../app/app-context.tsx';
import { Badge, Notice } from '../../ui/badge.tsx';
import { Button, CopyButton } from '../../ui/button.tsx';
import { latencyText, momentText } from '../../ui/format.ts';
import { Icon } from '../../ui/icon.tsx';
import { Problem } from '../../ui/problem.tsx';
import { Bytes } from '../../ui/values.tsx';
import { addRequest } from './queries.ts';
import { type BodyPreview, noReplayText, previewBody, statusText, statusTone, troubleText } from './request-text.ts';

export interface RequestDetailProps {
  readonly entry: TunnelLogEntry;
  readonly request: CapturedRequest;
}

export const RequestDetail = ({ entry, request }: RequestDetailProps) => {
  const trouble = troubleText(request);
  return (
    <div className="min-w-0 p-4 sm:p-5">
      <h3 className="break-all font-mono">
        <span className="font-semibold">{request.method}</span> {request.path}
      </h3>
      <p className="mt-1.5 flex flex-wrap items-center gap-x-3 gap-y-1 text-muted text-sm">
        <Badge tone={statusTone(request.status)}>{statusText(request)}</Badge>
        {request.duration_ms !== null && (
          <span title="From its head to the end of the answer">{latencyText(request.duration_ms)}</span>
        )}
        <time dateTime={request.at}>{momentText(Date.parse(request.at))}</time>
        {request.replay_of !== undefined && (
          <span>
            Replay of <RequestLink entry={entry} requestId={request.replay_of} />
          </span>
        )}
      </p>
      {trouble !== null && (
        <div className="mt-3">
          <Notice tone="warn">{trouble}</Notice>
        </div>
      )}
      <div className="mt-4">
        <ReplayButton entry={entry} request={request} />
      </div>
      <Side title="Request" headers={request.request_headers} body={request.request_body} size={request.request_size} />
      <Side
        title="Response"
        headers={request.response_headers}
        body={request.response_body}
        size={request.response_size}
      />
    </div>
  );
};

interface SideProps {
  readonly title: 'Request' | 'Response';
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  readonly size: number;
}

const Side = ({ title, headers, body, size }: SideProps) => (
  <section className="mt-6">
    <h4 className="mb-2 flex items-baseline justify-between gap-4 font-semibold">
      {title}
      <span className="font-normal text-muted text-sm">
        Body <Bytes value={size} />
      </span>
    </h4>
    <HeaderTable caption={`Headers of the ${title.toLowerCase()}`} headers={headers} />
    <BodyView label={`Body of the ${title.toLowerCase()}`} preview={previewBody(body, size, headers['content-type'])} />
  </section>
);

interface HeaderTableProps {
  readonly caption: string;
  readonly headers: Readonly<Record<string, string>>;
}

const HeaderTable = ({ caption, headers }: HeaderTableProps) => {
  const lines = Object.entries(headers);
  if (lines.length === 0) return <p className="text-muted text-sm">No headers.</p>;
  return (
    <table className="w-full table-fixed border-collapse text-left text-sm">
      <caption className="sr-only">{caption}</caption>
      <thead className="sr-only">
        <tr>
          <th scope="col">Name</th>
          <th scope="col">Value</th>
        </tr>
      </thead>
      <tbody>
        {lines.map(([name, value]) => (
          <tr key={name} className="border-line border-b align-top last:border-0">
            <th scope="row" className="w-2/5 break-words py-1 pr-3 font-mono font-normal text-muted">
              {name}
            </th>
            <td className="break-words py-1 font-mono">{value}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
};

interface BodyViewProps {
  readonly label: string;
  readonly preview: BodyPreview;
}

const BodyView = ({ label, preview: { text, note } }: BodyViewProps) => (
  <div className="mt-3">
    {text !== null && (
      <div className="relative">
        {/* It may be longer than its place: the keyboard must be able to scroll it. */}
        <pre
          // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a place that scrolls
          tabIndex={0}
          role="region"
          aria-label={label}
          className="max-h-80 overflow-auto whitespace-pre-wrap break-words rounded-md border border-line bg-sunken p-3 pr-11 font-mono text-sm"
        >
          {text}
        </pre>
        <span className="absolute top-1 right-1">
          <CopyButton text={text} label={`Copy: ${label}`} />
        </span>
      </div>
    )}
    {note !== null && <p className="mt-1 text-muted text-sm">{note}</p>}
  </div>
);

interface ReplayButtonProps {
  readonly entry: TunnelLogEntry;
  readonly request: CapturedRequest;
}

/** Sends a captured request to the local service once more, and says what came back. */
const ReplayButton = ({ entry, request }: ReplayButtonProps) => {
  const api = useApi();
  const queries = useQueryClient();
  const replay = useMutation({
    mutationFn: () => api.replay(entry.id, request.id),
    onSuccess: (made) => addRequest(queries, entry.id, made),
  });
  const why = noReplayText(request, entry.unregistered_at === null);
  return (
    <div className="space-y-3">
      <div className="flex flex-wrap items-center gap-3">
        <Button size="small" disabled={why !== null} pending={replay.isPending} onClick={() => replay.mutate()}>
          <Icon name="replay" className="size-4" />
          Replay
        </Button>
        <span className="text-muted text-sm">{why ?? 'Sends the same request to your service once more.'}</span>
      </div>
      {replay.isSuccess && <ReplayResult entry={entry} made={replay.data} />}
      {replay.isError && <Problem title="The request was not replayed" error={replay.error} />}
    </div>
  );
};

const ReplayResult = ({ entry, made }: { readonly entry: TunnelLogEntry; readonly made: CapturedRequest }) => (
  <Notice tone={statusTone(made.status)} live>
    Your service answered with <strong className="font-semibold">{statusText(made)}</strong>
    {made.duration_ms !== null && ` in ${latencyText(made.duration_ms)}`}:{' '}
    <RequestLink entry={entry} requestId={made.id} label="see the new request" />
  </Notice>
);

interface RequestLinkProps {
  readonly entry: TunnelLogEntry;
  readonly requestId: string;
  readonly label?: string;
}

const RequestLink = ({ entry, requestId, label = requestId }: RequestLinkProps) => (
  <Link
    to="/tunnels/$id"
    params={{ id: entry.id }}
    search={{ request: requestId }}
    replace
    resetScroll={false}
    className="rounded-sm text-accent underline underline-offset-2"
  >
    {label}
  </Link>
);
