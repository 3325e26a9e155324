// How a tunnel of each kind is started: the commands, ready to be pasted into a shell.
import { Link } from '@tanstack/react-router';
import { type ShownProtocol, shownProtocol } from '@tunnel/contract';
import { useState } from 'react';
import { connectPeerCommand, PEER_LISTEN_PORT, tunnelCommand } from '../../app/client-commands.ts';
import { InstallClient } from '../../app/install-client.tsx';
import { protocolText } from '../../app/tunnel-address.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { CommandLine } from '../../ui/empty-state.tsx';

interface Step {
  readonly text: string;
  readonly command: string;
}

const STEPS: Readonly<Record<ShownProtocol, readonly Step[]>> = {
  http: [
    {
      text: 'A web app on port 3000',
      command: tunnelCommand('http 3000'),
    },
  ],
  tcp: [
    {
      text: 'Any TCP service, here a database on port 5432',
      command: tunnelCommand('tcp 5432'),
    },
  ],
  udp: [
    {
      text: 'Any UDP service, here a game server on port 27015',
      command: tunnelCommand('udp 27015'),
    },
  ],
  p2p: [
    {
      text: 'Between two of your machines, with no public address. Make a secret and give it to both',
      command: tunnelCommand('p2p secret > secret'),
    },
    {
      text: 'On the machine with the service, here on port 5432',
      command: tunnelCommand('p2p publish office-db 5432 --secret-file secret'),
    },
    {
      text: `On the other machine. The service is at its port ${PEER_LISTEN_PORT}`,
      command: connectPeerCommand('office-db'),
    },
  ],
};

/** The commands of one kind. */
export const KindHelp = ({ protocol }: { readonly protocol: ShownProtocol }) => (
  <ul className="space-y-3">
    {STEPS[protocol].map(({ text, command }) => (
      <li key={text}>
        <p className="mb-1.5">{text}.</p>
        <CommandLine command={command} label={`Copy the command: ${text}`} />
      </li>
    ))}
  </ul>
);

/** Opens the commands of all kinds. */
export const NewTunnelButton = () => {
  const [open, setOpen] = useState(false);
  const close = (): void => setOpen(false);
  return (
    <>
      <Button onClick={() => setOpen(true)}>New tunnel</Button>
      <Dialog open={open} onClose={close} title="Start a tunnel" footer={<Button onClick={close}>Done</Button>}>
        <p className="text-muted">
          Run one of these in a terminal after <code className="font-mono text-sm">tunnel login</code>, or with an API
          key from{' '}
          <Link to="/keys" className="rounded-sm text-accent underline underline-offset-2">
            Keys
          </Link>
          .
        </p>
        <InstallClient />
        {shownProtocol.options.map((protocol) => (
          <section key={protocol} aria-labelledby={`new-${protocol}`}>
            <h3 id={`new-${protocol}`} className="mb-1 font-semibold text-sm">
              {protocolText(protocol)}
            </h3>
            <KindHelp protocol={protocol} />
          </section>
        ))}
      </Dialog>
    </>
  );
};
