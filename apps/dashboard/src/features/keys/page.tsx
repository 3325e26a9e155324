// Page with the account's API keys.
import { useQuery } from '@tanstack/react-query';
import type { ApiToken } from '@tunnel/contract';
import { type ReactNode, useCallback, useMemo, useState } from 'react';
import { useApi } from '../../api/app-context.tsx';
import { Loaded } from '../../shared/panel-boundary.tsx';
import { Badge } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { Empty } from '../../ui/empty-state.tsx';
import { Icon } from '../../ui/icon.tsx';
import { PageHead } from '../../ui/page-head.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { Count, Time } from '../../ui/values.tsx';
import { CreateKeyDialog } from './create-key-dialog.tsx';
import { keysQuery } from './keys.ts';
import { RevokeKeyDialog } from './revoke-key-dialog.tsx';

export const KeysPage = () => {
  const keys = useQuery(keysQuery(useApi()));
  const [creating, setCreating] = useState(false);
  const [revoking, setRevoking] = useState<string | null>(null);
  const { refetch } = keys;
  const askToRevoke = useCallback(
    ({ id }: ApiToken): void => {
      setRevoking(id);
      void refetch();
    },
    [refetch],
  );
  const create = (
    <Button kind="primary" onClick={() => setCreating(true)}>
      <Icon name="plus" />
      Create key
    </Button>
  );
  return (
    <>
      <PageHead
        title="Keys"
        description="Use a separate key for every device, so you can revoke keys one by one."
        actions={create}
      />
      <Card padded={false}>
        <Loaded query={keys} title="Couldn't load your keys" pending={<KeyTable />} errorClass="p-4 sm:p-5">
          {(list) => <KeyTable keys={list} onRevoke={askToRevoke} create={create} />}
        </Loaded>
      </Card>
      <CreateKeyDialog open={creating} onClose={() => setCreating(false)} />
      {/* The dialog gets the key from the refreshed list, because tunnels can open and close while the dialog is open. */}
      <RevokeKeyDialog
        apiKey={keys.data?.find(({ id }) => id === revoking) ?? null}
        onClose={() => setRevoking(null)}
      />
    </>
  );
};

interface KeyTableProps {
  /** API keys of the account. Undefined while loading. */
  readonly keys?: readonly ApiToken[];
  readonly onRevoke?: (key: ApiToken) => void;
  /** Button to create a key, shown in the empty table. */
  readonly create?: ReactNode;
}

/** Table of API keys with labels and usage. */
const KeyTable = ({ keys, onRevoke, create }: KeyTableProps) => {
  const columns = useMemo(() => columnsFor(onRevoke), [onRevoke]);
  return (
    <div className="[&_thead_tr]:border-t-0">
      <Table
        caption="API keys"
        columns={columns}
        rows={keys}
        rowKey={({ id }) => id}
        empty={
          <Empty icon="keys" title="No keys yet" action={create}>
            <code className="font-mono">tunnel login</code> creates a key for your computer. Create a key here for a
            server or a script.
          </Empty>
        }
      />
    </div>
  );
};

const columnsFor = (onRevoke: ((key: ApiToken) => void) | undefined): readonly Column<ApiToken>[] => [
  {
    key: 'label',
    header: 'Label',
    isHead: true,
    cell: ({ label, token_hash }) => (
      <span className="inline-block min-w-0 sm:min-w-32">
        <span className="block wrap-anywhere">{label}</span>
        <span
          className="font-mono font-normal text-muted text-xs"
          title={`SHA-256 of the key: ${token_hash}. We don't store the key.`}
        >
          Fingerprint {token_hash.slice(0, 8)}
        </span>
      </span>
    ),
  },
  { key: 'status', header: 'Status', cell: (key) => <KeyStatus apiKey={key} /> },
  { key: 'created', header: 'Created', cell: ({ created_at }) => <Time at={created_at} /> },
  {
    key: 'used',
    header: 'Last used',
    cell: ({ last_used_at }) =>
      last_used_at === null ? <span className="text-muted">Never</span> : <Time at={last_used_at} />,
  },
  {
    key: 'tunnels',
    header: 'Tunnels',
    align: 'end',
    cell: ({ tunnel_count }) => <Count value={tunnel_count} />,
  },
  {
    key: 'revoke',
    header: 'Action',
    align: 'end',
    cell: (key) => (
      <Button size="small" aria-label={`Revoke ${key.label}`} onClick={() => onRevoke?.(key)}>
        Revoke
      </Button>
    ),
  },
];

const KeyStatus = ({ apiKey }: { readonly apiKey: ApiToken }) => (
  <span className="inline-flex gap-1.5">
    <Badge tone={apiKey.status === 'active' ? 'good' : 'neutral'} dot={apiKey.status === 'active'}>
      {apiKey.status === 'active' ? 'Active' : apiKey.status}
    </Badge>
    {apiKey.unlimited && <Badge title="The operator removed the tunnel limit for this key.">No limit</Badge>}
  </span>
);
