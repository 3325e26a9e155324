// Who you are here: the name can be changed, the address cannot.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { UserPublic } from '@tunnel/contract';
import { type SubmitEvent, useState } from 'react';
import { useApi } from '../../app/app-context.tsx';
import { Loaded } from '../../app/panel-boundary.tsx';
import { ME_KEY, meQuery } from '../../app/queries.ts';
import { Badge } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Card, Skeleton } from '../../ui/card.tsx';
import { TextField } from '../../ui/field.tsx';
import { dateText } from '../../ui/format.ts';
import { MaybeProblem } from '../../ui/problem.tsx';

const NAME_MAX_CHARACTERS = 100;

export const ProfileCard = () => {
  const me = useQuery(meQuery(useApi()));
  return (
    <Card title="Account">
      <Loaded
        query={me}
        title="Your account cannot be shown"
        pending={<Skeleton className="h-[21.375rem] w-full md:h-39" />}
      >
        {(user) => (
          <div className="grid gap-6 md:grid-cols-2">
            <NameForm key={user.id} user={user} />
            <AccountDetails user={user} />
          </div>
        )}
      </Loaded>
    </Card>
  );
};

const NameForm = ({ user }: { readonly user: UserPublic }) => {
  const api = useApi();
  const queries = useQueryClient();
  const [name, setName] = useState(user.display_name ?? '');
  const saving = useMutation({
    mutationFn: (wanted: string) => api.updateMe({ display_name: wanted === '' ? null : wanted }),
    onSuccess: (after) => {
      queries.setQueryData(ME_KEY, after);
      setName(after.display_name ?? '');
    },
  });
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (!saving.isPending) saving.mutate(name.trim());
  };
  return (
    <form onSubmit={submit} noValidate className="space-y-3">
      <TextField
        label="Name"
        name="name"
        autoComplete="name"
        maxLength={NAME_MAX_CHARACTERS}
        value={name}
        placeholder="None"
        hint="How this page calls you. Empty: your address."
        onChange={({ target }) => {
          setName(target.value);
          saving.reset();
        }}
      />
      <div className="flex items-center gap-3">
        <Button type="submit" pending={saving.isPending}>
          Save name
        </Button>
        <span role="status" className="text-good">
          {saving.isSuccess && 'Saved.'}
        </span>
      </div>
      <MaybeProblem error={saving.error} />
    </form>
  );
};

const AccountDetails = ({ user }: { readonly user: UserPublic }) => (
  <dl className="space-y-3">
    <div>
      <dt className="text-muted text-sm">E-mail address</dt>
      <dd className="mt-0.5 flex flex-wrap items-center gap-2 break-all">
        {user.email}
        <Badge tone={user.email_verified ? 'good' : 'warn'}>{user.email_verified ? 'Verified' : 'Not verified'}</Badge>
      </dd>
    </div>
    <div>
      <dt className="text-muted text-sm">Signs in with</dt>
      <dd className="mt-0.5">{user.auth_method === 'password' ? 'A password' : user.auth_method}</dd>
    </div>
    <div>
      <dt className="text-muted text-sm">Account since</dt>
      <dd className="mt-0.5">{dateText(Date.parse(user.created_at))}</dd>
    </div>
  </dl>
);
