// Where the account is logged in, with the way to end each of the others, or all of them.
import { queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { PlatformClient, UserSession } from '@tunnel/contract';
import { useMemo } from 'react';
import { useApi } from '../../app/app-context.tsx';
import { Loaded } from '../../app/panel-boundary.tsx';
import { Badge } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { isFault, Problem } from '../../ui/problem.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { Time } from '../../ui/values.tsx';
import { programName } from './user-agent.ts';

export const SessionsCard = () => {
  const sessions = useQuery(sessionsQuery(useApi()));
  const ending = useEndSessions();
  const others = sessions.data?.filter(({ current }) => !current) ?? [];
  const { mutate, variables, isPending, error } = ending;
  const columns = useMemo(
    () => columnsFor((session) => mutate([session]), isPending ? (variables ?? []) : []),
    [mutate, isPending, variables],
  );
  return (
    <Card
      title="Sessions"
      description="Where you are logged in. One that is ended may still work for up to 15 minutes, until its access token runs out."
      padded={false}
      actions={
        <Button
          size="small"
          disabled={others.length === 0}
          pending={isPending && (variables?.length ?? 0) > 1}
          onClick={() => mutate(others)}
        >
          End all others
        </Button>
      }
    >
      {error !== null && (
        <div className="px-4 pb-4 sm:px-5">
          <Problem title="A session was not ended" error={error} />
        </div>
      )}
      <Loaded
        query={sessions}
        title="The sessions cannot be shown"
        pending={<Sessions columns={columns} />}
        errorClass="px-4 pb-4 sm:px-5 sm:pb-5"
      >
        {(list) => <Sessions columns={columns} list={list} />}
      </Loaded>
    </Card>
  );
};

interface SessionsProps {
  readonly columns: readonly Column<UserSession>[];
  readonly list?: readonly UserSession[];
}

const Sessions = ({ columns, list }: SessionsProps) => (
  <Table
    caption="Places where you are logged in"
    columns={columns}
    rows={list}
    rowKey={({ id }) => id}
    skeletonRows={2}
  />
);

const columnsFor = (
  end: (session: UserSession) => void,
  ending: readonly UserSession[],
): readonly Column<UserSession>[] => [
  {
    key: 'program',
    header: 'Program',
    isHead: true,
    cell: ({ user_agent, current }) => (
      <span title={user_agent} className="inline-flex flex-wrap items-center gap-x-2 gap-y-1 max-sm:justify-end">
        {programName(user_agent)}
        {current && <Badge tone="accent">This one</Badge>}
      </span>
    ),
  },
  { key: 'address', header: 'Last seen at', cell: ({ address }) => <span className="break-all">{address}</span> },
  { key: 'used', header: 'Last active', cell: ({ last_used_at }) => <Time at={last_used_at} /> },
  { key: 'since', header: 'Logged in', cell: ({ created_at }) => <Time at={created_at} /> },
  {
    key: 'end',
    header: 'Action',
    align: 'end',
    cell: (session) =>
      session.current ? (
        <span className="text-muted text-sm">Log out below</span>
      ) : (
        <Button
          size="small"
          aria-label={`End the session of ${programName(session.user_agent)} at ${session.address}`}
          pending={ending.some(({ id }) => id === session.id)}
          onClick={() => end(session)}
        >
          End
        </Button>
      ),
  },
];

/** One by one: each that is ended leaves the list, also when a later one fails. */
const useEndSessions = () => {
  const api = useApi();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async (sessions: readonly UserSession[]) => {
      for (const { id } of sessions) {
        try {
          await api.endSession(id);
        } catch (error) {
          // It has ended meanwhile.
          if (!isFault(error, 'LOGIN_SESSION_UNKNOWN')) throw error;
        }
        queries.setQueryData<UserSession[]>(SESSIONS_KEY, (list) => list?.filter((session) => session.id !== id));
      }
    },
    onSettled: () => queries.invalidateQueries({ queryKey: SESSIONS_KEY }),
  });
};

const SESSIONS_KEY = ['sessions'] as const;

const sessionsQuery = (api: PlatformClient) => queryOptions({ queryKey: SESSIONS_KEY, queryFn: () => api.sessions() });
