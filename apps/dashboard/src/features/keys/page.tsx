// The API keys of the account.
import { useQuery } from '@tanstack/react-query';
import type { ApiToken } from '@tunnel/contract';
import { useState } from 'react';
import { useApi } from '../../app/app-context.tsx';
import { Loaded } from '../../app/panel-boundary.tsx';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { Icon } from '../../ui/icon.tsx';
import { PageHead } from '../../ui/page-head.tsx';
import { CreateKeyDialog } from './create-key-dialog.tsx';
import { KeyTable } from './key-table.tsx';
import { keysQuery } from './queries.ts';
import { RevokeKeyDialog } from './revoke-key-dialog.tsx';

export const KeysPage = () => {
  const keys = useQuery(keysQuery(useApi()));
  const [creating, setCreating] = useState(false);
  const [revoking, setRevoking] = useState<ApiToken | null>(null);
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
        description="A client shows its key when it opens tunnels. Give each machine one of its own, so that you can revoke it alone."
        actions={create}
      />
      <Card padded={false}>
        <Loaded query={keys} title="The keys cannot be shown" pending={<KeyTable />} errorClass="p-4 sm:p-5">
          {(list) => <KeyTable keys={list} onRevoke={setRevoking} create={create} />}
        </Loaded>
      </Card>
      <CreateKeyDialog open={creating} onClose={() => setCreating(false)} />
      <RevokeKeyDialog apiKey={revoking} keyCount={keys.data?.length ?? 0} onClose={() => setRevoking(null)} />
    </>
  );
};
