// Panel with the captured requests of an HTTP tunnel: a list, and the selected request next to the list. The URL contains the selected
// request.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { CAPTURES_KEPT_MAX, type CapturedRequest, type TunnelLogEntry } from '@tunnel/contract';
import { useDeferredValue, useMemo, useRef, useState } from 'react';
import { useApi } from '../../api/app-context.tsx';
import { LoadedCard } from '../../shared/loaded-card.tsx';
import { addressOf } from '../../shared/tunnel-address.ts';
import { Badge } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Skeleton } from '../../ui/card.tsx';
import { classNames } from '../../ui/class-names.ts';
import { Empty } from '../../ui/empty-state.tsx';
import { inputClass } from '../../ui/field.tsx';
import { latencyText } from '../../ui/format.ts';
import { useMedia } from '../../ui/hooks.ts';
import { moved, useKeys } from '../../ui/keyboard.ts';
import { Problem } from '../../ui/problem.tsx';
import { Time } from '../../ui/values.tsx';
import { StaleNotice } from './health-panel.tsx';
import { isTurnedAway } from './policy-text.ts';
import { loadOlderRequests, requestsQuery } from './queries.ts';
import { RequestDetail } from './request-detail.tsx';
import {
  filterRequests,
  methodsOf,
  NO_FILTER,
  type RequestFilter,
  STATUS_CHOICES,
  type StatusChoice,
} from './request-filter.ts';
import { type RequestLog, shownText } from './request-log.ts';
import { statusText, statusTone } from './request-text.ts';

export const RequestsPanel = ({ entry }: { readonly entry: TunnelLogEntry }) => {
  const requests = useQuery(requestsQuery(useApi(), entry, false));
  return (
    <LoadedCard
      title="Requests"
      description={`The newest ${CAPTURES_KEPT_MAX} requests are stored until an hour after the tunnel ends. Secrets are redacted.`}
      query={requests}
      problem="Couldn't load the requests"
      pending={
        <div className="px-4 pb-4 sm:px-5">
          <Skeleton className="h-56 w-full" />
        </div>
      }
    >
      {(list) => (
        <>
          <div className="px-4 sm:px-5">
            <StaleNotice query={requests} />
          </div>
          {list.requests.length === 0 ? <NoRequests entry={entry} /> : <Requests entry={entry} newest={list} />}
        </>
      )}
    </LoadedCard>
  );
};

const Requests = ({ entry, newest }: { readonly entry: TunnelLogEntry; readonly newest: RequestLog }) => {
  const { request: chosen } = useSearch({ from: '/shell/tunnels/$id' });
  const select = useSelect(entry);
  const rows = useRef<HTMLUListElement>(null);
  const detail = useRef<HTMLDivElement>(null);
  const isBelow = useMedia('(width < 64rem)');
  const { log, found, filter, setFilter } = useFound(entry, newest);
  const [sent, setSent] = useState<string | null>(null);
  const index = found.findIndex(({ id }) => id === chosen);
  const showReplayed = (made: CapturedRequest): void => {
    setSent(made.id);
    select(made.id);
  };
  useKeys({
    list: rows,
    onMove: (move) => {
      const next = moved(move, index, found.length);
      const id = next === null ? undefined : found[next]?.id;
      if (id === undefined) return;
      select(id);
      rows.current?.querySelector<HTMLElement>(`[data-request="${id}"]`)?.focus();
    },
  });
  return (
    <div className="border-line border-t lg:grid lg:grid-cols-[minmax(0,2fr)_minmax(0,3fr)]">
      <div className="border-line max-lg:border-b lg:border-r">
        <RequestFilters requests={log.requests} {...{ filter, setFilter }} />
        {found.length === 0 && (
          <p role="status" className="px-4 py-6 text-center text-muted sm:px-5">
            No matching requests.
          </p>
        )}
        <ul ref={rows} className="max-h-72 divide-y divide-line overflow-y-auto lg:max-h-[40rem]">
          {found.map((request) => (
            <li key={request.id}>
              <RequestRow
                request={request}
                isChosen={request.id === chosen}
                onChoose={() => {
                  select(request.id);
                  // On narrow screens, the details are below the list.
                  if (isBelow) detail.current?.scrollIntoView({ block: 'start' });
                }}
              />
            </li>
          ))}
        </ul>
        <ListFoot entry={entry} log={log} found={found.length} isAnswered={filter.status === 'turned-away'} />
      </div>
      <div ref={detail} className="min-w-0">
        <Chosen
          entry={entry}
          request={[...log.requests, ...newest.requests].find(({ id }) => id === chosen)}
          isAsked={chosen !== undefined}
          isNew={chosen !== undefined && chosen === sent}
          onReplayed={showReplayed}
        />
      </div>
    </div>
  );
};

const useFound = (entry: TunnelLogEntry, newest: RequestLog) => {
  const [filter, setFilter] = useState(NO_FILTER);
  const isAnswered = filter.status === 'turned-away';
  const answered = useQuery({ ...requestsQuery(useApi(), entry, true), enabled: isAnswered }).data;
  const log = isAnswered ? (answered ?? newest) : newest;
  // The deferred filter keeps typing fast, even with a long list.
  const wanted = useDeferredValue(filter);
  const found = useMemo(() => filterRequests(log.requests, wanted), [log, wanted]);
  return { log, found, filter, setFilter };
};

interface ListFootProps {
  readonly entry: TunnelLogEntry;
  readonly log: RequestLog;
  /** Number of requests that match the filter. */
  readonly found: number;
  readonly isAnswered: boolean;
}

/** Footer of the list: the number of shown requests, and a button to load older requests. */
const ListFoot = ({ entry, log, found, isAnswered }: ListFootProps) => {
  const api = useApi();
  const queries = useQueryClient();
  const older = useMutation({ mutationFn: () => loadOlderRequests(api, queries, entry, isAnswered) });
  return (
    <div className="border-line border-t px-4 py-2 text-muted text-sm sm:px-5">
      <div className="flex flex-wrap items-center justify-between gap-x-3 gap-y-1">
        <p>{shownText(log, found)}</p>
        {log.cursor !== null && (
          <Button size="small" pending={older.isPending} onClick={() => older.mutate()}>
            Load older
          </Button>
        )}
      </div>
      {older.error !== null && (
        <div className="mt-2">
          <Problem title="Couldn't load older requests" error={older.error} />
        </div>
      )}
    </div>
  );
};

interface ChosenProps {
  readonly entry: TunnelLogEntry;
  readonly request: CapturedRequest | undefined;
  readonly isAsked: boolean;
  readonly isNew: boolean;
  readonly onReplayed: (made: CapturedRequest) => void;
}

const Chosen = ({ entry, request, isAsked, isNew, onReplayed }: ChosenProps) => {
  if (request !== undefined) return <RequestDetail key={request.id} {...{ entry, request, isNew, onReplayed }} />;
  return (
    <p className="grid min-h-32 place-items-center px-6 py-10 text-center text-muted">
      {isAsked ? 'This request is no longer stored.' : 'Select a request'}
    </p>
  );
};

interface RequestFiltersProps {
  readonly requests: readonly CapturedRequest[];
  readonly filter: RequestFilter;
  readonly setFilter: (filter: RequestFilter) => void;
}

const SELECT = `${inputClass} w-auto! min-w-0 flex-1`;

const RequestFilters = ({ requests, filter, setFilter }: RequestFiltersProps) => (
  <div className="flex flex-wrap gap-2 border-line border-b px-4 py-2.5 sm:px-5">
    <input
      type="search"
      aria-label="Filter requests"
      placeholder="Filter by path or ID"
      value={filter.text}
      onChange={({ target }) => setFilter({ ...filter, text: target.value })}
      className={`${inputClass} basis-full`}
    />
    <select
      aria-label="Status"
      value={filter.status}
      onChange={({ target }) => setFilter({ ...filter, status: target.value as StatusChoice })}
      className={SELECT}
    >
      {STATUS_CHOICES.map(({ value, label }) => (
        <option key={value} value={value}>
          {label}
        </option>
      ))}
    </select>
    <select
      aria-label="Method"
      value={filter.method}
      onChange={({ target }) => setFilter({ ...filter, method: target.value })}
      className={SELECT}
    >
      <option value="">Any method</option>
      {methodsOf(requests, filter.method).map((method) => (
        <option key={method}>{method}</option>
      ))}
    </select>
  </div>
);

const useSelect = ({ id }: TunnelLogEntry): ((requestId: string) => void) => {
  const navigate = useNavigate();
  return (request) =>
    void navigate({ to: '/tunnels/$id', params: { id }, search: { request }, replace: true, resetScroll: false });
};

const NoRequests = ({ entry }: { readonly entry: TunnelLogEntry }) => {
  const { href } = addressOf(entry);
  if (entry.unregistered_at !== null) return <Empty title="Requests are no longer stored" />;
  return (
    <Empty title="No requests yet" {...(href === null ? {} : { command: `curl ${href}/` })}>
      <p>Send a request to see it here.</p>
    </Empty>
  );
};

interface RequestRowProps {
  readonly request: CapturedRequest;
  readonly isChosen: boolean;
  readonly onChoose: () => void;
}

const RequestRow = ({ request, isChosen, onChoose }: RequestRowProps) => (
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
      {isTurnedAway(request) && <span>Rejected</span>}
      {request.policy?.user != null && (
        <span className="min-w-0 truncate" title={request.policy.user}>
          {request.policy.user}
        </span>
      )}
      {request.replay_of !== undefined && <span>{request.edited === true ? 'Edited replay' : 'Replay'}</span>}
    </span>
  </button>
);
