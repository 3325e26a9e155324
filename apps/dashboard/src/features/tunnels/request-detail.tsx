// Details of a captured request: request, response and duration, with buttons to copy the request, and to replay the request unchanged or
// edited.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { CapturedRequest, ReplayEdit, TunnelLogEntry } from '@tunnel/contract';
import { lazy, Suspense, useState } from 'react';
import { useApi } from '../../api/app-context.tsx';
import { addressOf } from '../../shared/tunnel-address.ts';
import { Badge, Notice } from '../../ui/badge.tsx';
import { Button, CopyButton } from '../../ui/button.tsx';
import { latencyText } from '../../ui/format.ts';
import { Icon } from '../../ui/icon.tsx';
import { MaybeProblem } from '../../ui/problem.tsx';
import { Bytes, Moment } from '../../ui/values.tsx';
import { addRequest } from './queries.ts';
import { curlCommand, headerLines } from './request-copy.ts';
import {
  type BodyPreview,
  noReplayText,
  previewBody,
  replayedText,
  statusText,
  statusTone,
  troubleText,
} from './request-text.ts';

export interface RequestDetailProps {
  readonly entry: TunnelLogEntry;
  readonly request: CapturedRequest;
  /** True if the request is a replay that was just sent from this page. */
  readonly isNew: boolean;
  readonly onReplayed: (made: CapturedRequest) => void;
}

export const RequestDetail = ({ entry, request, isNew, onReplayed }: RequestDetailProps) => {
  const trouble = troubleText(request);
  return (
    <div className="min-w-0 p-4 sm:p-5">
      {isNew && request.replay_of !== undefined && (
        <div className="mb-4">
          <Notice tone={statusTone(request.status)} live>
            {replayedText(request)} <RequestLink entry={entry} requestId={request.replay_of} label="View original" />
          </Notice>
        </div>
      )}
      <h3 className="break-all font-mono">
        <span className="font-semibold">{request.method}</span> {request.path}
      </h3>
      <p className="mt-1.5 flex flex-wrap items-center gap-x-3 gap-y-1 text-muted text-sm">
        <Badge tone={statusTone(request.status)}>{statusText(request)}</Badge>
        {request.duration_ms !== null && (
          <span title="From the request headers to the end of the response">{latencyText(request.duration_ms)}</span>
        )}
        <Moment at={request.at} />
        <code className="font-mono">{request.id}</code>
        {request.replay_of !== undefined && (
          <span>
            {request.edited === true ? 'Edited replay' : 'Replay'} of{' '}
            <RequestLink entry={entry} requestId={request.replay_of} />
          </span>
        )}
      </p>
      {trouble !== null && (
        <div className="mt-3">
          <Notice tone="warn">{trouble}</Notice>
        </div>
      )}
      {request.policy != null && (
        <Suspense fallback={null}>
          <PolicyTrace {...{ entry, request }} policy={request.policy} />
        </Suspense>
      )}
      <div className="mt-4">
        <Actions entry={entry} request={request} onReplayed={onReplayed} />
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
    <div className="mb-2 flex items-center justify-between gap-4">
      <h4 className="font-semibold">{title}</h4>
      {Object.keys(headers).length > 0 && (
        <CopyButton text={headerLines(headers)} label={`Copy ${title.toLowerCase()} headers`} />
      )}
    </div>
    <HeaderTable caption={`${title} headers`} headers={headers} />
    <BodyView
      label={`${title.toLowerCase()} body`}
      size={size}
      preview={previewBody(body, size, headers['content-type'])}
    />
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
  readonly size: number;
  readonly preview: BodyPreview;
}

const BodyView = ({ label, size, preview: { text, note } }: BodyViewProps) => (
  <div className="mt-3">
    <p className="mb-1 text-muted text-sm">
      Body{size > 0 && ' '}
      {size > 0 && <Bytes value={size} />}
    </p>
    {text !== null && (
      <div className="relative">
        {/* The text can overflow its box, so the box is focusable for scrolling with the keyboard. */}
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
          <CopyButton text={text} label={`Copy ${label}`} />
        </span>
      </div>
    )}
    {note !== null && <p className="mt-1 text-muted text-sm">{note}</p>}
  </div>
);

/** Loaded with the first request of a tunnel with rules, to keep the page's initial code small. */
const PolicyTrace = lazy(async () => ({ default: (await import('./policy-trace.tsx')).PolicyTrace }));

/** Loaded when the user first edits a request, to keep the page's initial code small. */
const EditReplayDialog = lazy(async () => ({ default: (await import('./edit-replay-dialog.tsx')).EditReplayDialog }));

const Actions = ({ entry, request, onReplayed }: Omit<RequestDetailProps, 'isNew'>) => {
  const api = useApi();
  const queries = useQueryClient();
  const [isEditing, setEditing] = useState(false);
  const replay = useMutation({
    mutationFn: (edit: ReplayEdit | undefined) => api.replay(entry.id, request.id, edit),
    onSuccess: (made) => {
      addRequest(queries, entry.id, made);
      onReplayed(made);
    },
  });
  const why = noReplayText(request, entry.unregistered_at === null);
  const edit = (isOpen: boolean): void => {
    replay.reset();
    setEditing(isOpen);
  };
  return (
    <div className="space-y-3">
      <div className="flex flex-wrap items-center gap-2">
        <Button
          size="small"
          title="Resend to your local service"
          disabled={why !== null}
          pending={replay.isPending && !isEditing}
          onClick={() => replay.mutate(undefined)}
        >
          <Icon name="replay" className="size-4" />
          Replay
        </Button>
        <Button size="small" disabled={why !== null} onClick={() => edit(true)}>
          Edit and replay
        </Button>
        <CopyButton
          text={curlCommand(request, addressOf(entry).href ?? 'http://localhost')}
          label="Copy as cURL"
          showLabel
        />
      </div>
      {why !== null && <p className="text-muted text-sm">{why}</p>}
      {!isEditing && <MaybeProblem error={replay.error} />}
      {isEditing && (
        <Suspense fallback={null}>
          <EditReplayDialog
            request={request}
            isPending={replay.isPending}
            error={replay.error}
            onSend={(changes) => replay.mutate(changes)}
            onClose={() => edit(false)}
          />
        </Suspense>
      )}
    </div>
  );
};

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
