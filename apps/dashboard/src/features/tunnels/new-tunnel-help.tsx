// How a tunnel of each kind is started: the commands, ready to be pasted into a shell.
import { Link } from '@tanstack/react-router';
import { type ShownProtocol, shownProtocol } from '@tunnel/contract';
import { useState } from 'react';
import { connectPeerCommand, PEER_LISTEN_PORT, type ServerAddress, tunnelCommand } from '../../app/client-commands.ts';
import { useServer } from '../../app/queries.ts';
import { protocolText } from '../../app/tunnel-address.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { CommandLine } from '../../ui/empty-state.tsx';

interface Step {
  readonly text: string;
  readonly command: (server: ServerAddress | undefined) => string;
}

const STEPS: Readonly<Record<ShownProtocol, readonly Step[]>> = {
  http: [
    {
      text: 'A web app on port 3000',
      command: (server) => tunnelCommand('http 3000', server),
    },
  ],
  tcp: [
    {
      text: 'Any TCP service, here a database on port 5432',
      command: (server) => tunnelCommand('tcp 5432', server),
    },
  ],
  udp: [
    {
      text: 'Any UDP service, here a game server on port 27015',
      command: (server) => tunnelCommand('udp 27015', server),
    },
  ],
  p2p: [
    {
      text: 'Between two of your machines, with no public address. Make a secret and give it to both',
      command: () => 'npx tunnel p2p secret > secret',
    },
    {
      text: 'On the machine with the service, here on port 5432',
      command: (server) => tunnelCommand('p2p publish office-db 5432 --secret-file secret', server),
    },
    {
      text: `On the other machine. The service is at its port ${PEER_LISTEN_PORT}`,
      command: (server) => connectPeerCommand('office-db', server),
    },
  ],
};

/** The commands of one kind. */
export const KindHelp = ({ protocol }: { readonly protocol: ShownProtocol }) => {
  const server = useServer();
  return (
    <ul className="space-y-3">
      {STEPS[protocol].map(({ text, command }) => (
        <li key={text}>
          <p className="mb-1.5">{text}.</p>
          <CommandLine command={server === null ? null : command(server)} label={`Copy the command: ${text}`} />
        </li>
      ))}
    </ul>
  );
};

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
