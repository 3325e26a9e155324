// Dialog that asks for confirmation and stops live tunnels. Explains the consequences.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { TunnelLogEntry } from '@tunnel/contract';
import { useApi } from '../../api/app-context.tsx';
import { addressOf } from '../../shared/tunnel-address.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { plural } from '../../ui/format.ts';
import { MaybeProblem } from '../../ui/problem.tsx';
import { stopTunnels } from './queries.ts';

export interface StopDialogProps {
  /** Live tunnels at the same address. Empty while the dialog is closed. */
  readonly tunnels: readonly TunnelLogEntry[];
  readonly onClose: () => void;
}

export const StopDialog = ({ tunnels, onClose }: StopDialogProps) => {
  const api = useApi();
  const queries = useQueryClient();
  const stopping = useMutation({
    mutationFn: (entries: readonly TunnelLogEntry[]) => stopTunnels(api, queries, entries),
    onSuccess: () => close(),
  });
  const close = (): void => {
    onClose();
    stopping.reset();
  };
  const [first] = tunnels;
  const isOne = tunnels.length === 1;
  return (
    <Dialog
      open={first !== undefined}
      onClose={close}
      title={isOne ? 'Stop this tunnel?' : `Stop ${plural(tunnels.length, 'tunnel')}?`}
      footer={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button kind="danger" pending={stopping.isPending} onClick={() => stopping.mutate(tunnels)}>
            {isOne ? 'Stop tunnel' : 'Stop tunnels'}
          </Button>
        </>
      }
    >
      {first !== undefined && (
        <>
          <p className="wrap-anywhere font-medium">{addressOf(first).text}</p>
          <ul className="list-disc space-y-1.5 pl-5">
            <li>New visitors can no longer connect. Open connections can finish.</li>
            <li>{clientsText(tunnels)} To start the tunnel again, run the client.</li>
          </ul>
          <MaybeProblem error={stopping.error} />
        </>
      )}
    </Dialog>
  );
};

const clientsText = (tunnels: readonly TunnelLogEntry[]): string => {
  const names = [...new Set(tunnels.flatMap(({ client_name: name }) => (name === undefined ? [] : [name])))];
  if (names.length === 0 || names.length > 3) return "The client won't reopen the tunnel.";
  return names.length === 1
    ? `The client on ${names[0]} won't reopen the tunnel.`
    : `The clients on ${names.join(', ')} won't reopen the tunnel.`;
};
