// Dialog that asks for confirmation and revokes an API key. Tells the effect on live tunnels.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { ApiToken } from '@tunnel/contract';
import { useApi } from '../../api/app-context.tsx';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { isFault, MaybeProblem } from '../../ui/problem.tsx';
import { Time } from '../../ui/values.tsx';
import { KEYS_KEY, liveTunnelsText } from './keys.ts';

export interface RevokeKeyDialogProps {
  /** API key to revoke. Null while the dialog is closed. */
  readonly apiKey: ApiToken | null;
  readonly onClose: () => void;
}

export const RevokeKeyDialog = ({ apiKey, onClose }: RevokeKeyDialogProps) => {
  const api = useApi();
  const queries = useQueryClient();
  const revoking = useMutation({
    mutationFn: async (key: ApiToken) => {
      try {
        await api.revokeKey(key.id);
      } catch (error) {
        // The key was already revoked, for example in another tab, so the request counts as successful.
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
            <li>{liveTunnelsText(apiKey)}</li>
            <li>Clients using this key stop and can't reconnect.</li>
            <li>You can't undo this.</li>
          </ul>
          <p className="text-muted">
            <LastUse apiKey={apiKey} />
          </p>
          <MaybeProblem error={revoking.error} />
        </>
      )}
    </Dialog>
  );
};

/** Time of the key's last use. The platform updates the time with a delay of some seconds. */
const LastUse = ({ apiKey }: { readonly apiKey: ApiToken }) => {
  if (apiKey.last_used_at === null) return <>Never used.</>;
  return (
    <>
      Last used <Time at={apiKey.last_used_at} />.
    </>
  );
};
