// Sends a captured request to the local service once more, and says what came back.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { CapturedRequest, TunnelLogEntry } from '@tunnel/contract';
import { useApi } from '../../app/app-context.tsx';
import { Button } from '../../ui/button.tsx';
import { latencyText } from '../../ui/format.ts';
import { Icon } from '../../ui/icon.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Problem } from '../../ui/problem.tsx';
import { addRequest } from './queries.ts';
import { noReplayText, statusText, statusTone } from './request-words.ts';

export interface ReplayButtonProps {
  readonly entry: TunnelLogEntry;
  readonly request: CapturedRequest;
}

export const ReplayButton = ({ entry, request }: ReplayButtonProps) => {
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
    <RequestLink entry={entry} requestId={made.id} words="see the new request" />
  </Notice>
);

interface RequestLinkProps {
  readonly entry: TunnelLogEntry;
  readonly requestId: string;
  readonly words?: string;
}

export const RequestLink = ({ entry, requestId, words = requestId }: RequestLinkProps) => (
  <Link
    to="/tunnels/$id"
    params={{ id: entry.id }}
    search={{ request: requestId }}
    replace
    resetScroll={false}
    className="rounded-sm text-accent underline underline-offset-2"
  >
    {words}
  </Link>
);
