// Dialog that asks for confirmation and disconnects a peer from a p2p tunnel. Explains the consequences.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { EdgePeer } from '@tunnel/contract';
import { useApi } from '../../api/app-context.tsx';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { isFault, MaybeProblem } from '../../ui/problem.tsx';
import { forgetPeer } from './queries.ts';

export interface DismissPeerDialogProps {
  readonly tunnelId: string;
  /** Peer to disconnect. Null while the dialog is closed. */
  readonly peer: EdgePeer | null;
  readonly onClose: () => void;
}

export const DismissPeerDialog = ({ tunnelId, peer, onClose }: DismissPeerDialogProps) => {
  const api = useApi();
  const queries = useQueryClient();
  const dismissing = useMutation({
    mutationFn: async ({ peer_id }: EdgePeer) => {
      try {
        await api.dismissPeer(tunnelId, peer_id);
      } catch (error) {
        // The peer has already left, so the request counts as successful.
        if (!isFault(error, 'P2P_PEER_UNKNOWN')) throw error;
      }
    },
    onSuccess: (_, { peer_id }) => {
      close();
      return forgetPeer(queries, tunnelId, peer_id);
    },
  });
  const close = (): void => {
    onClose();
    dismissing.reset();
  };
  return (
    <Dialog
      open={peer !== null}
      onClose={close}
      title="Disconnect this peer?"
      footer={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button kind="danger" pending={dismissing.isPending} onClick={() => peer !== null && dismissing.mutate(peer)}>
            Disconnect peer
          </Button>
        </>
      }
    >
      {peer !== null && (
        <>
          <p>
            The client at <code className="break-all font-mono text-sm">{peer.client_addr}</code> is disconnected.
          </p>
          <ul className="list-disc space-y-1.5 pl-5">
            <li>Relayed and direct connections end within 2 seconds.</li>
            <li>The peer can't reconnect for 60 seconds. After that, any client with the secret can connect.</li>
            <li>To block the peer permanently, publish with a new secret or revoke the peer's API key.</li>
          </ul>
          <MaybeProblem error={dismissing.error} />
        </>
      )}
    </Dialog>
  );
};
