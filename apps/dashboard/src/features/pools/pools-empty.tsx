// An account without pools: what they are, and the commands that make one.
import { Link } from '@tanstack/react-router';
import { serverFlags } from '../../app/client-commands.ts';
import { useServer } from '../../app/queries.ts';
import { Card } from '../../ui/card.tsx';
import { CommandLine, Empty } from '../../ui/empty-state.tsx';

const KEY_FILE = '~/.tunnel/shop-key';
/** `flags`: how the client finds its server; null: not known yet. */
const stepsFor = (flags: string | null): { readonly text: string; readonly command: string | null }[] => [
  {
    text: 'Make a group key. All members share it.',
    command: `mkdir -p ~/.tunnel && (umask 077; head -c 24 /dev/urandom | base64 > ${KEY_FILE})`,
  },
  {
    text: 'Start the first member.',
    command: memberCommand(3000, flags),
  },
  {
    text: 'Start another one, here or on any machine with the group key.',
    command: memberCommand(3001, flags),
  },
];

const memberCommand = (port: number, flags: string | null): string | null =>
  flags === null ? null : `npx tunnel http ${port}${flags} --group shop --group-key-file ${KEY_FILE} --health tcp`;

export const PoolsEmpty = () => {
  const server = useServer();
  const flags = server === null ? null : serverFlags(server).map((flag) => ` ${flag}`);
  return <PoolsEmptyCard steps={stepsFor(flags?.join('') ?? null)} />;
};

const PoolsEmptyCard = ({ steps }: { readonly steps: ReturnType<typeof stepsFor> }) => (
  <Card padded={false}>
    <Empty icon="pools" title="No pools yet">
      <p>Balance traffic across several tunnels.</p>
    </Empty>
    <ol className="mx-auto max-w-2xl space-y-5 px-4 pb-10 sm:px-5">
      {steps.map(({ text, command }, index) => (
        <li key={text}>
          <p className="mb-1.5">
            <span className="font-medium">{index + 1}.</span> {text}
          </p>
          <CommandLine command={command} />
        </li>
      ))}
      <li className="list-none text-muted text-sm">
        Run <code className="font-mono">npx tunnel login</code> first, or use an API key from{' '}
        <Link to="/keys" className="rounded-sm text-accent underline underline-offset-2">
          Keys
        </Link>
        .
      </li>
    </ol>
  </Card>
);
