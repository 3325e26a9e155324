// Shown to an account without groups: an explanation of groups, and the commands that create a group.
import { Link } from '@tanstack/react-router';
import { tunnelCommand } from '../../shared/client-commands.ts';
import { InstallClient } from '../../shared/install-client.tsx';
import { Card } from '../../ui/card.tsx';
import { CommandLine, Empty } from '../../ui/empty-state.tsx';

const KEY_FILE = 'group-key';

const memberCommand = (port: number): string =>
  tunnelCommand(`http ${port} --group shop --group-key-file ${KEY_FILE} --health tcp`);

const STEPS: readonly { readonly text: string; readonly command: string }[] = [
  {
    text: 'Create a group key. Copy the file to every computer in the group.',
    command: `(umask 077 && ${tunnelCommand('group-key')} > ${KEY_FILE})`,
  },
  {
    text: 'Start the first member.',
    command: memberCommand(3000),
  },
  {
    text: 'Start a second member, on this computer or on another computer with the group key.',
    command: memberCommand(3001),
  },
];

export const PoolsEmpty = () => (
  <Card padded={false}>
    <Empty icon="pools" title="No groups yet">
      <p>Use a group to balance traffic across several tunnels.</p>
    </Empty>
    <ol className="mx-auto max-w-2xl space-y-5 px-4 pb-10 sm:px-5">
      {STEPS.map(({ text, command }, index) => (
        <li key={text}>
          <p className="mb-1.5">
            <span className="font-medium">{index + 1}.</span> {text}
          </p>
          <CommandLine command={command} />
        </li>
      ))}
      <li className="list-none text-muted text-sm">
        Run <code className="font-mono">tunnel login</code> once on every computer, or use an API key from{' '}
        <Link to="/keys" className="rounded-sm text-accent underline underline-offset-2">
          Keys
        </Link>
        .
      </li>
      <li className="list-none">
        <InstallClient />
      </li>
    </ol>
  </Card>
);
