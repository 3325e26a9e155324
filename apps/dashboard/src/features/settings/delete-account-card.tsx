// Card and dialog to delete the account. The dialog lists the data that is deleted and the data that is kept.
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useApi, useApp } from '../../api/app-context.tsx';
import { meQuery } from '../../api/queries.ts';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { AccountDialog, CURRENT_PASSWORD } from './account-dialog.tsx';

export const DeleteAccountCard = () => {
  const me = useQuery(meQuery(useApi())).data;
  const [open, setOpen] = useState(false);
  const hasPassword = me === undefined || me.auth_method === 'password';
  return (
    <Card
      title="Delete account"
      description={
        hasPassword
          ? 'Stops your tunnels and permanently deletes your data.'
          : `This account signs in with ${me.auth_method}. Ask the operator of this server to delete the account.`
      }
      actions={hasPassword && <Button onClick={() => setOpen(true)}>Delete account</Button>}
      padded={false}
    >
      <DeleteDialog open={open} email={me?.email ?? ''} onClose={() => setOpen(false)} />
    </Card>
  );
};

interface DeleteDialogProps {
  readonly open: boolean;
  readonly email: string;
  readonly onClose: () => void;
}

const DeleteDialog = ({ open, email, onClose }: DeleteDialogProps) => {
  const { api, session } = useApp();
  const deleting = useMutation({
    mutationFn: (password: string) => api.deleteAccount({ password }),
    onSuccess: () => session.accountDeleted(),
    gcTime: 0,
  });
  const close = (): void => {
    onClose();
    deleting.reset();
  };
  return (
    <AccountDialog
      {...{ open, onClose: close, title: 'Delete your account?', action: 'Delete account', kind: 'danger' }}
      {...{ pending: deleting.isPending, error: deleting.error }}
      onSubmit={(field) => deleting.mutate(field(CURRENT_PASSWORD))}
    >
      <ul className="list-disc space-y-1.5 pl-5">
        <li>
          Your live tunnels stop within 2 seconds. After a few days, other accounts can take your names and ports.
        </li>
        <li>You are signed out everywhere. Your API keys and connected apps stop working.</li>
        <li>Your subscription ends. We keep your invoices, as required by tax law.</li>
        <li>
          We erase <span className="break-all">{email === '' ? 'your email' : email}</span>, your name and your tunnel
          history.
        </li>
        <li>You can't undo this.</li>
      </ul>
    </AccountDialog>
  );
};
