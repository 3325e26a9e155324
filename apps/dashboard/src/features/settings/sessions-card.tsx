// Card with the account's sessions. Other devices can be signed out one at a time or all at once.
import { queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { PlatformClient, UserSession } from '@tunnel/contract';
import { useMemo, useState } from 'react';
import { useApi } from '../../api/app-context.tsx';
import { Loaded } from '../../shared/panel-boundary.tsx';
import { Notice } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { plural } from '../../ui/format.ts';
import { isFault, MaybeProblem, Problem } from '../../ui/problem.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { Time } from '../../ui/values.tsx';
import { programName } from './user-agent.ts';

export const SessionsCard = () => {
  const sessions = useQuery(sessionsQuery(useApi()));
  const one = useEndSessions();
  const all = useEndSessions();
  const [confirming, setConfirming] = useState(false);
  const others = sessions.data?.filter(({ current }) => !current) ?? [];
  const { mutate, variables, isPending } = one;
  const columns = useMemo(
    () => columnsFor((session) => mutate([session]), isPending ? (variables ?? []) : []),
    [mutate, isPending, variables],
  );
  return (
    <Card
      title="Devices"
      description="Devices signed in to your account. Signing out a device can take up to 15 minutes."
      padded={false}
      actions={
        <Button size="small" disabled={others.length === 0} onClick={() => setConfirming(true)}>
          Sign out everywhere else
        </Button>
      }
    >
      {(one.error !== null || all.data !== undefined) && (
        <div className="space-y-3 px-4 pb-4 sm:px-5">
          {one.error !== null && <Problem title="Couldn't sign out the device" error={one.error} />}
          {all.data !== undefined && (
            <Notice tone="good" live>
              Signed out of {plural(all.data, 'device')}.
            </Notice>
          )}
        </div>
      )}
      <Loaded
        query={sessions}
        title="Couldn't load your devices"
        pending={<Sessions columns={columns} />}
        errorClass="px-4 pb-4 sm:px-5 sm:pb-5"
      >
        {(list) => <Sessions columns={columns} list={list} />}
      </Loaded>
      <EndOthersDialog open={confirming} {...{ others, ending: all }} onClose={() => setConfirming(false)} />
    </Card>
  );
};

interface EndOthersDialogProps {
  readonly open: boolean;
  readonly others: readonly UserSession[];
  readonly ending: ReturnType<typeof useEndSessions>;
  readonly onClose: () => void;
}

const EndOthersDialog = ({ open, others, ending, onClose }: EndOthersDialogProps) => {
  // Signed-out sessions disappear from the list. While the request runs, the dialog keeps the original number.
  const count = ending.isPending ? ending.variables.length : others.length;
  const close = (): void => {
    onClose();
    // The success message stays after closing. An error was already shown in the dialog.
    if (ending.isError) ending.reset();
  };
  return (
    <Dialog
      {...{ open, onClose: close, dismissable: !ending.isPending }}
      title={`Sign out of ${plural(count, 'other device')}?`}
      footer={
        <>
          <Button disabled={ending.isPending} onClick={close}>
            Cancel
          </Button>
          <Button
            kind="danger"
            pending={ending.isPending}
            onClick={() => ending.mutate(others, { onSuccess: () => onClose() })}
          >
            Sign out
          </Button>
        </>
      }
    >
      <p>
        You'll need to sign in again in the browsers and clients (<code className="font-mono">tunnel login</code>) on
        these devices. Tunnels and API keys keep working.
      </p>
      <MaybeProblem error={ending.error} />
    </Dialog>
  );
};

interface SessionsProps {
  readonly columns: readonly Column<UserSession>[];
  readonly list?: readonly UserSession[];
}

const Sessions = ({ columns, list }: SessionsProps) => (
  <Table caption="Signed-in devices" columns={columns} rows={list} rowKey={({ id }) => id} skeletonRows={2} />
);

const columnsFor = (
  end: (session: UserSession) => void,
  ending: readonly UserSession[],
): readonly Column<UserSession>[] => [
  {
    key: 'program',
    header: 'Device',
    isHead: true,
    cell: ({ user_agent }) => <span title={user_agent}>{programName(user_agent)}</span>,
  },
  { key: 'address', header: 'IP address', cell: ({ address }) => <span className="break-all">{address}</span> },
  { key: 'used', header: 'Last active', cell: ({ last_used_at }) => <Time at={last_used_at} /> },
  { key: 'since', header: 'Signed in', cell: ({ created_at }) => <Time at={created_at} /> },
  {
    key: 'end',
    header: 'Action',
    align: 'end',
    cell: (session) =>
      session.current ? (
        <span className="text-muted text-sm">Current</span>
      ) : (
        <Button
          size="small"
          aria-label={`Sign out ${programName(session.user_agent)} at ${session.address}`}
          pending={ending.some(({ id }) => id === session.id)}
          onClick={() => end(session)}
        >
          Sign out
        </Button>
      ),
  },
];

/**
 * Ends sessions one at a time, so that each ended session leaves the list even if a later request fails. Resolves with the number of
 * sessions.
 */
const useEndSessions = () => {
  const api = useApi();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async (sessions: readonly UserSession[]) => {
      for (const { id } of sessions) {
        try {
          await api.endSession(id);
        } catch (error) {
          // The session has already ended, so the request counts as successful.
          if (!isFault(error, 'LOGIN_SESSION_UNKNOWN')) throw error;
        }
        queries.setQueryData<UserSession[]>(SESSIONS_KEY, (list) => list?.filter((session) => session.id !== id));
      }
      return sessions.length;
    },
    onSettled: () => queries.invalidateQueries({ queryKey: SESSIONS_KEY }),
  });
};

export const SESSIONS_KEY = ['sessions'] as const;

const sessionsQuery = (api: PlatformClient) => queryOptions({ queryKey: SESSIONS_KEY, queryFn: () => api.sessions() });
