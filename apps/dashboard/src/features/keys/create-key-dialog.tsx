// Dialog that creates an API key and shows the key once.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { KEY_LABEL_MAX_CHARACTERS } from '@tunnel/contract';
import { type SubmitEvent, useEffect, useRef, useState } from 'react';
import { useApi } from '../../api/app-context.tsx';
import { Notice } from '../../ui/badge.tsx';
import { Button, CopyButton } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { TextField } from '../../ui/field.tsx';
import { MaybeProblem } from '../../ui/problem.tsx';
import { KeyUses, type KeyUsesProps } from './key-uses.tsx';
import { KEYS_KEY } from './keys.ts';

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
    // The new key must not stay in the query cache. Only this dialog keeps the key.
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
      // The dialog cannot be closed while a key is being created, because the user would never see the key.
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
        hint="The device or person using the key"
        error={tried && missing ? 'Enter a label' : null}
        onChange={({ target }) => setLabel(target.value)}
      />
    </form>
  );
};

/** A newly created key with examples of its use. The key is never shown again. */
const NewKey = ({ token, label }: KeyUsesProps) => {
  const text = useRef<HTMLElement>(null);
  // The form's submit button is gone, so the keyboard focus moves to the key.
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
      <KeyUses token={token} label={label} />
    </>
  );
};
