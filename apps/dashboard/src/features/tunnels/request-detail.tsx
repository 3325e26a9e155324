// One captured request whole: what came, what went back, how long it took, and sending it again.
import type { CapturedRequest, TunnelLogEntry } from '@tunnel/contract';
import { Bytes } from '../../ui/amount.tsx';
import { Badge } from '../../ui/badge.tsx';
import { latencyText, momentText } from '../../ui/format.ts';
import { Notice } from '../../ui/notice.tsx';
import { ReplayButton, RequestLink } from './replay.tsx';
import { BodyView, HeaderTable } from './request-parts.tsx';
import { previewBody, statusText, statusTone, troubleText } from './request-words.ts';

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
