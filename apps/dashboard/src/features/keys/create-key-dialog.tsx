// Makes a key, and shows it: once.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { KEY_LABEL_MAX_CHARACTERS } from '@tunnel/contract';
import { type SubmitEvent, useState } from 'react';
import { useApi } from '../../app/app-context.tsx';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { TextField } from '../../ui/field.tsx';
import { MaybeProblem } from '../../ui/problem.tsx';
import { NewKey } from './new-key.tsx';
import { KEYS_KEY } from './queries.ts';

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
        I have stored it
      </Button>
    );
    return (
      <Dialog open={open} onClose={close} dismissable={false} title={`Your new key “${name}”`} footer={stored}>
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
      title="Create a key"
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
        hint="For you to tell your keys apart: the machine or the person that uses it."
        error={tried && missing ? 'Give the key a label.' : null}
        onChange={({ target }) => setLabel(target.value)}
      />
    </form>
  );
};
