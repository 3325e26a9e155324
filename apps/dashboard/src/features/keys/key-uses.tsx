// What a new key is used with, ready to copy: a command for a shell, or the configuration of an MCP host.
import { type ReactNode, useState } from 'react';
import { useIsMcpShown, useServer } from '../../api/queries.ts';
import { InstallClient } from '../../shared/install-client.tsx';
import { Choice, type ChoiceProps } from '../../ui/choice.tsx';
import { CodeBlock, CommandLine } from '../../ui/empty-state.tsx';
import { CHECKOUT, keyCommands, mcpConfigs } from './keys.ts';

export interface KeyUsesProps {
  readonly token: string;
  readonly label: string;
}

export const KeyUses = ({ token, label }: KeyUsesProps) => {
  const [use, setUse] = useState<'shell' | 'mcp'>('shell');
  return (
    <div className="space-y-4 border-line border-t pt-4">
      <Choice
        label="Where you use it"
        showLabel
        value={use}
        onChange={setUse}
        options={[
          { value: 'shell', label: 'Command line' },
          { value: 'mcp', label: 'MCP host' },
        ]}
      />
      {use === 'shell' ? <ShellUse {...{ token, label }} /> : <McpUse token={token} />}
      {use === 'shell' && <InstallClient />}
    </div>
  );
};

const ShellUse = ({ token, label }: KeyUsesProps) => {
  const [way, setWay] = useState<'file' | 'variable'>('file');
  const server = useServer();
  const commands = server === null ? null : keyCommands(token, label, server);
  return (
    <Use
      title="Put port 3000 online with it"
      choice={{
        label: 'How the command gets the key',
        value: way,
        onChange: setWay,
        options: [
          { value: 'file', label: 'From a file' },
          { value: 'variable', label: 'From a variable' },
        ],
      }}
      note={
        way === 'file'
          ? 'Saves the key in a file only you can read, then starts a tunnel.'
          : 'Passes the key to this one command. Your shell history may keep it.'
      }
    >
      <CommandLine
        command={commands === null ? null : commands[way === 'file' ? 'withFile' : 'withVariable']}
        label="Copy the command that starts a tunnel"
      />
    </Use>
  );
};

const McpUse = ({ token }: Pick<KeyUsesProps, 'token'>) => {
  const [way, setWay] = useState<'stdio' | 'remote'>('stdio');
  const server = useServer();
  const isRemoteOffered = useIsMcpShown() === true;
  const configs = server === null ? null : mcpConfigs(token, window.location.origin, server);
  const choice: ChoiceProps<'stdio' | 'remote'> = {
    label: 'How the host reaches your tunnels',
    value: way,
    onChange: setWay,
    options: [
      { value: 'stdio', label: 'This computer' },
      { value: 'remote', label: 'Remote' },
    ],
  };
  return (
    <Use
      title="Give a model your tunnels"
      choice={isRemoteOffered ? choice : undefined}
      note={
        way === 'stdio' ? (
          <>
            Add this to the configuration of your MCP host, with your checkout in place of{' '}
            <code className="font-mono">{CHECKOUT}</code>. A model can open tunnels to ports of this computer.
          </>
        ) : (
          'Nothing to install. A model can see, replay and close, but not open tunnels. A host that can log in by itself needs the URL alone, without a key.'
        )
      }
    >
      <CodeBlock text={configs?.[way] ?? null} label="Copy the configuration" />
    </Use>
  );
};

interface UseProps<T extends string> {
  readonly title: string;
  /** undefined: there is one way only. */
  readonly choice: ChoiceProps<T> | undefined;
  readonly note: ReactNode;
  /** To copy. */
  readonly children: ReactNode;
}

const Use = <T extends string>({ title, choice, note, children }: UseProps<T>) => (
  <div className="space-y-2">
    <div className="flex flex-wrap items-center justify-between gap-2">
      <p className="font-medium">{title}</p>
      {choice !== undefined && <Choice {...choice} />}
    </div>
    {children}
    <p className="text-muted text-sm">{note}</p>
  </div>
);
