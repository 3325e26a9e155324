// Card with the account's display name and the date of sign-up.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { UserPublic } from '@tunnel/contract';
import { type SubmitEvent, useState } from 'react';
import { useApi } from '../../api/app-context.tsx';
import { ME_KEY, meQuery } from '../../api/queries.ts';
import { Loaded } from '../../shared/panel-boundary.tsx';
import { Button } from '../../ui/button.tsx';
import { Card, Skeleton } from '../../ui/card.tsx';
import { TextField } from '../../ui/field.tsx';
import { dateText } from '../../ui/format.ts';
import { MaybeProblem } from '../../ui/problem.tsx';

const NAME_MAX_CHARACTERS = 100;

export const ProfileCard = () => {
  const me = useQuery(meQuery(useApi()));
  return (
    <Card title="Profile">
      <Loaded query={me} title="Couldn't load your account" pending={<Skeleton className="h-29 w-full sm:h-28" />}>
        {(user) => <NameForm key={user.id} user={user} />}
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
    <form onSubmit={submit} noValidate className="max-w-md space-y-3">
      <TextField
        label="Display name"
        name="name"
        autoComplete="name"
        maxLength={NAME_MAX_CHARACTERS}
        value={name}
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
        <span className="ml-auto text-muted text-sm">Member since {dateText(Date.parse(user.created_at))}</span>
      </div>
      <MaybeProblem error={saving.error} />
    </form>
  );
};
