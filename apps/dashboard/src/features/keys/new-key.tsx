// A key that was just made, with the command that uses it. It is never shown again.
import { useEffect, useRef, useState } from 'react';
import { useServer } from '../../app/use-server.ts';
import { Choice } from '../../ui/choice.tsx';
import { CommandLine } from '../../ui/command-line.tsx';
import { CopyButton } from '../../ui/copy-button.tsx';
import { Notice } from '../../ui/notice.tsx';
import { keyCommands } from './key-commands.ts';

export interface NewKeyProps {
  readonly token: string;
  readonly label: string;
}

export const NewKey = ({ token, label }: NewKeyProps) => {
  const text = useRef<HTMLElement>(null);
  // The button that made it is gone; the keyboard goes on from the key.
  useEffect(() => text.current?.focus(), []);
  return (
    <>
      <Notice tone="warn">
        This is the only time that the key is shown. Copy it now: only its hash is kept, and nobody can show it again.
      </Notice>
      <div className="space-y-2">
        <p className="font-medium">The key</p>
        <code
          ref={text}
          tabIndex={-1}
          className="block select-all break-all rounded-md border border-line bg-sunken px-3 py-2.5 font-mono text-sm"
        >
          {token}
        </code>
        <CopyButton text={token} label="Copy the key" showLabel />
      </div>
      <Commands token={token} label={label} />
    </>
  );
};

const Commands = ({ token, label }: NewKeyProps) => {
  const [way, setWay] = useState<'file' | 'variable'>('file');
  const server = useServer();
  const commands = server === null ? null : keyCommands(token, label, server);
  return (
    <div className="space-y-2">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <p className="font-medium">Publish port 3000 with it</p>
        <Choice
          label="How the command gets the key"
          value={way}
          onChange={setWay}
          options={[
            { value: 'file', label: 'From a file' },
            { value: 'variable', label: 'From a variable' },
          ]}
        />
      </div>
      <CommandLine
        command={commands === null ? null : commands[way === 'file' ? 'withFile' : 'withVariable']}
        label="Copy the command that opens a tunnel"
      />
      <p className="text-muted text-sm">
        {way === 'file'
          ? 'Puts the key into a file that you alone can read, and opens a tunnel with it.'
          : 'Gives the key to this one command. Your shell may remember the line.'}
      </p>
    </div>
  );
};
