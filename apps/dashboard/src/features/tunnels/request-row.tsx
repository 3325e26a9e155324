// One captured request in the list.
import type { CapturedRequest } from '@tunnel/contract';
import { Badge } from '../../ui/badge.tsx';
import { classNames } from '../../ui/class-names.ts';
import { latencyText } from '../../ui/format.ts';
import { Time } from '../../ui/time.tsx';
import { statusText, statusTone } from './request-words.ts';

export interface RequestRowProps {
  readonly request: CapturedRequest;
  readonly isChosen: boolean;
  readonly onChoose: () => void;
}

export const RequestRow = ({ request, isChosen, onChoose }: RequestRowProps) => (
  <button
    type="button"
    data-request={request.id}
    aria-current={isChosen ? 'true' : undefined}
    onClick={onChoose}
    className={classNames(
      'block w-full px-4 py-2.5 text-left focus-visible:-outline-offset-2 sm:px-5',
      isChosen ? 'bg-accent-soft' : 'hover:bg-page',
    )}
  >
    <span className="flex items-center gap-2">
      <span className="shrink-0 font-medium font-mono text-sm">{request.method}</span>
      <span className="min-w-0 flex-1 truncate font-mono text-sm" title={request.path}>
        {request.path}
      </span>
      <Badge tone={statusTone(request.status)}>{statusText(request)}</Badge>
    </span>
    <span className="mt-0.5 flex gap-3 text-muted text-sm">
      <Time at={request.at} />
      {request.duration_ms !== null && <span>{latencyText(request.duration_ms)}</span>}
      {request.replay_of !== undefined && <span>Replay</span>}
    </span>
  </button>
);
