// Commands that start a tunnel of each kind, ready to paste into a shell.
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { connectPeerCommand, PEER_LISTEN_PORT, tunnelCommand } from '../../shared/client-commands.ts';
import { InstallClient } from '../../shared/install-client.tsx';
import type { TunnelKind } from '../../shared/tunnel-address.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { CommandLine } from '../../ui/empty-state.tsx';

interface Step {
  readonly text: string;
  readonly command: string;
}

/** Kind of tunnel in the help. `files` is a folder that the client serves as an HTTP tunnel. */
type HelpKind = TunnelKind | 'files';

const STEPS: Readonly<Record<HelpKind, readonly Step[]>> = {
  http: [
    {
      text: 'A web app on port 3000',
      command: tunnelCommand('http 3000'),
    },
  ],
  files: [
    {
      text: 'A folder of files, without a local server',
      command: tunnelCommand('files ./public'),
    },
  ],
  tcp: [
    {
      text: 'Any TCP service, such as a database on port 5432',
      command: tunnelCommand('tcp 5432'),
    },
  ],
  tls: [
    {
      text: 'A service with its own certificate, such as on port 8443. TLS is passed through without decryption',
      command: tunnelCommand('tls 8443'),
    },
  ],
  udp: [
    {
      text: 'Any UDP service, such as a game server on port 27015',
      command: tunnelCommand('udp 27015'),
    },
  ],
  p2p: [
    {
      text: 'Between two computers, without a public address. Create a secret and copy it to both',
      command: tunnelCommand('p2p secret > secret'),
    },
    {
      text: 'On the computer with the service, such as on port 5432',
      command: tunnelCommand('p2p publish office-db 5432 --secret-file secret'),
    },
    {
      text: `On the other computer. The service is available there on port ${PEER_LISTEN_PORT}`,
      command: connectPeerCommand('office-db'),
    },
  ],
};

const HELP_KINDS: readonly (readonly [HelpKind, string])[] = [
  ['http', 'HTTP'],
  ['files', 'Files'],
  ['tcp', 'TCP'],
  ['tls', 'TLS'],
  ['udp', 'UDP'],
  ['p2p', 'P2P'],
];

/** The commands for a kind of tunnel. */
export const KindHelp = ({ kind }: { readonly kind: HelpKind }) => (
  <ul className="space-y-3">
    {STEPS[kind].map(({ text, command }) => (
      <li key={text}>
        <p className="mb-1.5">{text}.</p>
        <CommandLine command={command} label={`Copy the command: ${text}`} />
      </li>
    ))}
  </ul>
);

/** Button that opens a dialog with the commands for all kinds of tunnels. */
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
        {HELP_KINDS.map(([kind, title]) => (
          <section key={kind} aria-labelledby={`new-${kind}`}>
            <h3 id={`new-${kind}`} className="mb-1 font-semibold text-sm">
              {title}
            </h3>
            <KindHelp kind={kind} />
          </section>
        ))}
      </Dialog>
    </>
  );
};
