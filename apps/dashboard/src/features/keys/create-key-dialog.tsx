// Makes a key, and shows it: once.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { KEY_LABEL_MAX_CHARACTERS } from '@tunnel/contract';
import { type SubmitEvent, useEffect, useRef, useState } from 'react';
import { useApi } from '../../app/app-context.tsx';
import { useServer } from '../../app/queries.ts';
import { Notice } from '../../ui/badge.tsx';
import { Button, CopyButton } from '../../ui/button.tsx';
import { Choice } from '../../ui/choice.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { CommandLine } from '../../ui/empty-state.tsx';
import { TextField } from '../../ui/field.tsx';
import { MaybeProblem } from '../../ui/problem.tsx';
import { KEYS_KEY, keyCommands } from './keys.ts';

export interface CreateKeyDialogProps {
  readonly open: boolean;
  readonly onClose: () => void;
}

const FORM = 'create-key';

export const CreateKeyDialog = ({ open, onClose }: CreateKeyDialogProps) => {
  const api = useApi();
  const queries = useQueryClient();
  const [label, setLabel] = useState('');
  const creating = useMutation({
    mutationFn: (wanted: string) => api.createKey({ label: wanted }),
    onSuccess: () => queries.invalidateQueries({ queryKey: KEYS_KEY }),
    // Kept by nobody but this dialog.
    gcTime: 0,
  });
  const close = (): void => {
    onClose();
    setLabel('');
    creating.reset();
  };
  const made = creating.data;
  const name = label.trim();
  if (made !== undefined) {
    const stored = (
      <Button kind="primary" onClick={close}>
        Done
      </Button>
    );
    return (
      <Dialog open={open} onClose={close} dismissable={false} title={`New key “${name}”`} footer={stored}>
        <NewKey token={made.token} label={name} />
      </Dialog>
    );
  }
  return (
    <Dialog
      open={open}
      onClose={close}
      // A key that is being made would be there and never have been seen.
      dismissable={!creating.isPending}
      title="Create key"
      footer={
        <>
          <Button disabled={creating.isPending} onClick={close}>
            Cancel
          </Button>
          <Button kind="primary" type="submit" form={FORM} pending={creating.isPending}>
            Create key
          </Button>
        </>
      }
    >
      <LabelForm label={label} setLabel={setLabel} create={() => !creating.isPending && creating.mutate(name)} />
      <MaybeProblem error={creating.error} />
    </Dialog>
  );
};

interface LabelFormProps {
  readonly label: string;
  readonly setLabel: (label: string) => void;
  readonly create: () => void;
}

const LabelForm = ({ label, setLabel, create }: LabelFormProps) => {
  const [tried, setTried] = useState(false);
  const missing = label.trim() === '';
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    setTried(true);
    if (!missing) create();
  };
  return (
    <form id={FORM} onSubmit={submit} noValidate>
      <TextField
        label="Label"
        name="label"
        value={label}
        maxLength={KEY_LABEL_MAX_CHARACTERS}
        autoComplete="off"
        placeholder="laptop"
        hint="The device or person that uses it"
        error={tried && missing ? 'Enter a label' : null}
        onChange={({ target }) => setLabel(target.value)}
      />
    </form>
  );
};

interface NewKeyProps {
  readonly token: string;
  readonly label: string;
}

/** A key that was just made, with the command that uses it. It is never shown again. */
const NewKey = ({ token, label }: NewKeyProps) => {
  const text = useRef<HTMLElement>(null);
  // The button that made it is gone; the keyboard goes on from the key.
  useEffect(() => text.current?.focus(), []);
  return (
    <>
      <Notice tone="warn">Copy this key now. You won't see it again.</Notice>
      <div className="space-y-2">
        <p className="font-medium">Key</p>
        <code
          ref={text}
          tabIndex={-1}
          className="block select-all break-all rounded-md border border-line bg-sunken px-3 py-2.5 font-mono text-sm"
        >
          {token}
        </code>
        <CopyButton text={token} label="Copy key" showLabel />
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
        <p className="font-medium">Put port 3000 online with it</p>
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
        label="Copy the command that starts a tunnel"
      />
      <p className="text-muted text-sm">
        {way === 'file'
          ? 'Saves the key in a file only you can read, then starts a tunnel.'
          : 'Passes the key to this one command. Your shell history may keep it.'}
      </p>
    </div>
  );
};
