// Asks before a key is revoked, and says what that does.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { ApiToken } from '@tunnel/contract';
import { useApi } from '../../app/app-context.tsx';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { plural } from '../../ui/format.ts';
import { isFault, MaybeProblem } from '../../ui/problem.tsx';
import { Time } from '../../ui/values.tsx';
import { activeTunnelsQuery, KEYS_KEY } from './keys.ts';

export interface RevokeKeyDialogProps {
  /** null: closed. */
  readonly apiKey: ApiToken | null;
  /** Of the account. */
  readonly keyCount: number;
  readonly onClose: () => void;
}

export const RevokeKeyDialog = ({ apiKey, keyCount, onClose }: RevokeKeyDialogProps) => {
  const api = useApi();
  const queries = useQueryClient();
  const active = useQuery({ ...activeTunnelsQuery(api), enabled: apiKey !== null });
  const revoking = useMutation({
    mutationFn: async (key: ApiToken) => {
      try {
        await api.revokeKey(key.id);
      } catch (error) {
        // Revoked in another place meanwhile: what was wanted holds.
        if (!isFault(error, 'KEY_UNKNOWN')) throw error;
      }
    },
    onSuccess: (_, key) => {
      queries.setQueryData<ApiToken[]>(KEYS_KEY, (keys) => keys?.filter(({ id }) => id !== key.id));
      close();
      return queries.invalidateQueries({ queryKey: KEYS_KEY });
    },
  });
  const close = (): void => {
    onClose();
    revoking.reset();
  };
  return (
    <Dialog
      open={apiKey !== null}
      onClose={close}
      title={apiKey === null ? '' : `Revoke “${apiKey.label}”?`}
      footer={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button kind="danger" pending={revoking.isPending} onClick={() => apiKey !== null && revoking.mutate(apiKey)}>
            Revoke key
          </Button>
        </>
      }
    >
      {apiKey !== null && (
        <>
          <ul className="list-disc space-y-1.5 pl-5">
            <li>Tunnels that use this key stop within 2 seconds.</li>
            <li>Clients with this key can't connect anymore and exit with code 3.</li>
            <li>This can't be undone.</li>
          </ul>
          <p className="text-muted">
            <LastUse apiKey={apiKey} /> <ActiveTunnels count={active.data} isOnlyKey={keyCount === 1} />
          </p>
          <MaybeProblem error={revoking.error} />
        </>
      )}
    </Dialog>
  );
};

/** It is written down some seconds after the use itself. */
const LastUse = ({ apiKey }: { readonly apiKey: ApiToken }) => {
  if (apiKey.last_used_at === null) return <>Never used.</>;
  return (
    <>
      Last used <Time at={apiKey.last_used_at} />.
    </>
  );
};

/** The API does not tell which key opened a tunnel; with one key there is no question. */
const ActiveTunnels = ({ count, isOnlyKey }: { readonly count: number | undefined; readonly isOnlyKey: boolean }) => {
  if (count === undefined) return null;
  if (count === 0) return <>You have no live tunnels right now.</>;
  const tunnels = plural(count, 'live tunnel');
  if (isOnlyKey) return <>It's your only key: {tunnels} will stop.</>;
  return <>You have {tunnels} right now; those that use this key will stop.</>;
};
