// Examples of using a new key, ready to copy: a shell command, or the configuration of an MCP host.
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
        label="Use the key with"
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
      title="Publish port 3000"
      choice={{
        label: 'Pass the key',
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
          : 'Passes the key to this command only. Your shell history may store the key.'
      }
    >
      <CommandLine
        command={commands === null ? null : commands[way === 'file' ? 'withFile' : 'withVariable']}
        label="Copy the tunnel command"
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
    label: 'Connect the MCP host',
    value: way,
    onChange: setWay,
    options: [
      { value: 'stdio', label: 'This computer' },
      { value: 'remote', label: 'Remote' },
    ],
  };
  return (
    <Use
      title="Give an AI agent access to your tunnels"
      choice={isRemoteOffered ? choice : undefined}
      note={
        way === 'stdio' ? (
          <>
            Add this to the configuration of your MCP host. Replace <code className="font-mono">{CHECKOUT}</code> with
            the path of your checkout. The agent can open tunnels to ports of this computer.
          </>
        ) : (
          'No installation needed. The agent can list and close tunnels and replay requests, but not open tunnels. MCP hosts that support sign-in need only the URL, not a key.'
        )
      }
    >
      <CodeBlock text={configs?.[way] ?? null} label="Copy the configuration" />
    </Use>
  );
};

interface UseProps<T extends string> {
  readonly title: string;
  /** Options to switch between variants of the example. Undefined if the example has a single variant. */
  readonly choice: ChoiceProps<T> | undefined;
  readonly note: ReactNode;
  /** Code of the example, with a copy button. */
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
