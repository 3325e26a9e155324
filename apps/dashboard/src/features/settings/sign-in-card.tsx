// Card with the account's email address and sign-in method, with buttons to change the email address and the password.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { EmailChange, PasswordChange, UserPublic } from '@tunnel/contract';
import { type ReactNode, useState } from 'react';
import { useApi, useApp } from '../../api/app-context.tsx';
import { meQuery } from '../../api/queries.ts';
import { Loaded } from '../../shared/panel-boundary.tsx';
import { Badge, Notice } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Card, Skeleton } from '../../ui/card.tsx';
import { PasswordField, TextField } from '../../ui/field.tsx';
import { plural } from '../../ui/format.ts';
import { fieldProblem } from '../../ui/problem-text.ts';
import { AccountDialog, CURRENT_PASSWORD } from './account-dialog.tsx';
import { GRANTS_KEY } from './connected-apps-card.tsx';
import { SESSIONS_KEY } from './sessions-card.tsx';

export const SignInCard = () => {
  const me = useQuery(meQuery(useApi()));
  const [changing, setChanging] = useState<'email' | 'password' | null>(null);
  const [done, setDone] = useState('');
  const close = (): void => setChanging(null);
  const change = (what: 'email' | 'password'): void => {
    setDone('');
    setChanging(what);
  };
  return (
    <Card title="Sign-in">
      <Loaded query={me} title="Couldn't load your account" pending={<Skeleton className="h-48 w-full sm:h-26" />}>
        {(user) => (
          <div className="space-y-4">
            <Details user={user} onChange={change} />
            {done !== '' && (
              <Notice tone="good" live>
                {done}
              </Notice>
            )}
          </div>
        )}
      </Loaded>
      <EmailDialog open={changing === 'email'} onClose={close} onDone={setDone} />
      <PasswordDialog open={changing === 'password'} onClose={close} onDone={setDone} />
    </Card>
  );
};

interface DetailsProps {
  readonly user: UserPublic;
  readonly onChange: (what: 'email' | 'password') => void;
}

const Details = ({ user, onChange }: DetailsProps) => {
  // Users of an external sign-in provider change their email address and password with the provider.
  const hasPassword = user.auth_method === 'password';
  return (
    <dl className="space-y-4">
      <Row name="Email" action={hasPassword && <Button onClick={() => onChange('email')}>Change email</Button>}>
        {user.email}
        <Badge tone={user.email_verified ? 'good' : 'warn'}>{user.email_verified ? 'Verified' : 'Not verified'}</Badge>
      </Row>
      <Row
        name="Sign-in method"
        action={hasPassword && <Button onClick={() => onChange('password')}>Change password</Button>}
      >
        {hasPassword ? 'Password' : user.auth_method}
      </Row>
    </dl>
  );
};

interface RowProps {
  readonly name: string;
  readonly action: ReactNode;
  readonly children: ReactNode;
}

const Row = ({ name, action, children }: RowProps) => (
  <div className="sm:grid sm:grid-cols-[minmax(0,1fr)_auto] sm:items-center sm:gap-x-4">
    <dt className="text-muted text-sm">{name}</dt>
    <dd className="mt-0.5 flex flex-wrap items-center gap-2 break-all">{children}</dd>
    <dd className="max-sm:mt-2 sm:col-start-2 sm:row-span-2 sm:row-start-1">{action}</dd>
  </div>
);

interface ChangeProps {
  readonly open: boolean;
  readonly onClose: () => void;
  /** Called with a success message after the change. */
  readonly onDone: (text: string) => void;
}

const PasswordDialog = ({ open, onClose, onDone }: ChangeProps) => {
  const { api, session } = useApp();
  const queries = useQueryClient();
  const changing = useMutation({
    mutationFn: (body: PasswordChange) => api.changePassword(body),
    onSuccess: ({ access_token: token, ended_sessions: ended }) => {
      // The password change revoked the previous access token.
      session.signIn(token);
      for (const queryKey of [SESSIONS_KEY, GRANTS_KEY]) void queries.invalidateQueries({ queryKey });
      close();
      onDone(ended === 0 ? 'Password changed.' : `Password changed. Signed out of ${plural(ended, 'other device')}.`);
    },
    gcTime: 0,
  });
  const close = (): void => {
    onClose();
    changing.reset();
  };
  const atNew = fieldProblem(changing.error, 'new_password');
  return (
    <AccountDialog
      {...{ open, onClose: close, title: 'Change password', action: 'Change password' }}
      {...{ pending: changing.isPending, error: changing.error, atField: atNew !== null }}
      onSubmit={(field) =>
        changing.mutate({ current_password: field(CURRENT_PASSWORD), new_password: field('new_password') })
      }
      more={
        <PasswordField
          label="New password"
          name="new_password"
          autoComplete="new-password"
          required
          hint="At least 8 characters"
          error={atNew}
        />
      }
    >
      <p className="text-muted">
        Your other devices are signed out, and connected apps lose access. Tunnels and API keys keep working.
      </p>
    </AccountDialog>
  );
};

/**
 * Dialog to change the email address. The API responds the same way whether or not the address belongs to another account, so that users
 * cannot probe for accounts.
 */
const EmailDialog = ({ open, onClose, onDone }: ChangeProps) => {
  const api = useApi();
  const changing = useMutation({
    mutationFn: (body: EmailChange) => api.changeEmail(body),
    onSuccess: (_answer, { new_email }) => {
      close();
      onDone(
        `We sent a link to ${new_email.trim()}. Open it to finish the change. Until then, your current address stays in use.`,
      );
    },
    gcTime: 0,
  });
  const close = (): void => {
    onClose();
    changing.reset();
  };
  const atNew = fieldProblem(changing.error, 'new_email');
  return (
    <AccountDialog
      {...{ open, onClose: close, title: 'Change email', action: 'Send link' }}
      {...{ pending: changing.isPending, error: changing.error, atField: atNew !== null }}
      onSubmit={(field) => changing.mutate({ password: field(CURRENT_PASSWORD), new_email: field('new_email') })}
      more={<TextField label="New email" name="new_email" type="email" autoComplete="email" required error={atNew} />}
    >
      <p className="text-muted">We'll send a link to the new address and a notice to your current address.</p>
    </AccountDialog>
  );
};
