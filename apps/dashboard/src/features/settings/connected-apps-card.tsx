// Card with the apps that have access to the account, each with a button to disconnect.
import { queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { OauthGrant, OauthGrants, PlatformClient } from '@tunnel/contract';
import { useState } from 'react';
import { useApi } from '../../api/app-context.tsx';
import { LoadedCard } from '../../shared/loaded-card.tsx';
import { SCOPE_TEXTS } from '../../shared/scope-texts.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { CodeBlock } from '../../ui/empty-state.tsx';
import { isFault, MaybeProblem } from '../../ui/problem.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { Time } from '../../ui/values.tsx';

export const ConnectedAppsCard = () => {
  const apps = useQuery(grantsQuery(useApi()));
  const [leaving, setLeaving] = useState<OauthGrant | null>(null);
  return (
    <LoadedCard
      title="Connected apps"
      description="MCP hosts and other apps with access to your account"
      query={apps}
      problem="Couldn't load your connected apps"
      pending={<Apps />}
      dialogs={<DisconnectDialog grant={leaving} onClose={() => setLeaving(null)} />}
    >
      {({ grants, mcp }) =>
        grants.length === 0 ? <NoApps hasMcp={mcp !== false} /> : <Apps grants={grants} onDisconnect={setLeaving} />
      }
    </LoadedCard>
  );
};

const NoApps = ({ hasMcp }: { readonly hasMcp: boolean }) => (
  <div className="max-w-prose space-y-2 px-4 pb-4 sm:px-5 sm:pb-5">
    {hasMcp ? (
      <>
        <p className="text-muted">
          No connected apps. Add this URL to an MCP host to connect it. You'll be asked to allow access.
        </p>
        <CodeBlock text={`${window.location.origin}/mcp`} label="Copy the URL for MCP hosts" />
      </>
    ) : (
      <p className="text-muted">No connected apps. Access for MCP hosts is turned off on this server.</p>
    )}
  </div>
);

interface AppsProps {
  /** Apps with access to the account. Undefined while loading. */
  readonly grants?: readonly OauthGrant[];
  readonly onDisconnect?: (grant: OauthGrant) => void;
}

const Apps = ({ grants, onDisconnect = () => {} }: AppsProps) => (
  <Table
    caption="Connected apps"
    columns={columnsFor(onDisconnect)}
    rows={grants}
    rowKey={({ id }) => id}
    skeletonRows={1}
  />
);

const columnsFor = (disconnect: (grant: OauthGrant) => void): readonly Column<OauthGrant>[] => [
  {
    key: 'app',
    header: 'App',
    isHead: true,
    cell: ({ client_id, client_host, client_name }) => (
      <span className="inline-block min-w-0 sm:min-w-32" title={client_id}>
        <span className="wrap-anywhere block">{client_host}</span>
        {client_name !== client_host && (
          <bdi className="wrap-anywhere block font-normal text-muted text-sm">{client_name}</bdi>
        )}
      </span>
    ),
  },
  {
    key: 'scopes',
    header: 'Access',
    cell: ({ scopes }) => (
      <ul>
        {scopes.map((scope) => (
          <li key={scope}>{SCOPE_TEXTS[scope].title}</li>
        ))}
      </ul>
    ),
  },
  { key: 'since', header: 'Connected', cell: ({ created_at }) => <Time at={created_at} /> },
  {
    key: 'used',
    header: 'Last used',
    cell: ({ last_used_at }) =>
      last_used_at === null ? <span className="text-muted">Never</span> : <Time at={last_used_at} />,
  },
  {
    key: 'disconnect',
    header: 'Action',
    align: 'end',
    cell: (grant) => (
      <Button size="small" aria-label={`Disconnect ${grant.client_host}`} onClick={() => disconnect(grant)}>
        Disconnect
      </Button>
    ),
  },
];

interface DisconnectDialogProps {
  /** App to disconnect. Null while the dialog is closed. */
  readonly grant: OauthGrant | null;
  readonly onClose: () => void;
}

const DisconnectDialog = ({ grant, onClose }: DisconnectDialogProps) => {
  const disconnecting = useDisconnect();
  const { isPending, error, mutate, reset } = disconnecting;
  const close = (): void => {
    onClose();
    reset();
  };
  return (
    <Dialog
      {...{ open: grant !== null, onClose: close, dismissable: !isPending }}
      title={grant === null ? '' : `Disconnect ${grant.client_host}?`}
      footer={
        <>
          <Button disabled={isPending} onClick={close}>
            Cancel
          </Button>
          <Button
            kind="danger"
            pending={isPending}
            onClick={() => grant !== null && mutate(grant, { onSuccess: close })}
          >
            Disconnect
          </Button>
        </>
      }
    >
      <p>The app loses access within 2 seconds and must ask for access again. Your tunnels keep working.</p>
      <MaybeProblem error={error} />
    </Dialog>
  );
};

const useDisconnect = () => {
  const api = useApi();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async ({ id }: OauthGrant) => {
      try {
        await api.revokeOauthGrant(id);
      } catch (error) {
        // The app was already disconnected, for example in another tab, so the request counts as successful.
        if (!isFault(error, 'OAUTH_GRANT_UNKNOWN')) throw error;
      }
      queries.setQueryData<OauthGrants>(GRANTS_KEY, (known) =>
        known === undefined ? known : { ...known, grants: known.grants.filter((grant) => grant.id !== id) },
      );
    },
    onSettled: () => queries.invalidateQueries({ queryKey: GRANTS_KEY }),
  });
};

export const GRANTS_KEY = ['oauth-grants'] as const;

const grantsQuery = (api: PlatformClient) => queryOptions({ queryKey: GRANTS_KEY, queryFn: () => api.oauthGrants() });
