// Who is signed in, and the way out.
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { Icon } from '../ui/icon.tsx';
import { Menu } from '../ui/menu.tsx';
import { useApp } from './app-context.tsx';
import { meQuery } from './me-query.ts';

export const AccountMenu = () => {
  const { api, session } = useApp();
  const me = useQuery(meQuery(api)).data;
  const navigate = useNavigate();
  const name = me?.display_name ?? me?.email ?? '';
  return (
    <Menu
      label={name === '' ? 'Account' : `Account of ${name}`}
      buttonClass="flex h-9 items-center gap-2 rounded-full border border-line bg-surface pr-2 pl-1 text-muted hover:border-edge hover:text-ink"
      button={
        <>
          <span
            aria-hidden="true"
            className="grid size-7 place-items-center rounded-full bg-accent-soft font-semibold text-accent text-xs uppercase"
          >
            {name.charAt(0)}
          </span>
          <Icon name="chevron" />
        </>
      }
      head={
        <>
          <p className="text-muted text-xs">Signed in as</p>
          <p className="truncate font-medium" title={me?.email}>
            {me?.email}
          </p>
        </>
      }
      items={[
        { label: 'Settings', onSelect: () => void navigate({ to: '/settings' }) },
        { label: 'API reference', onSelect: () => window.location.assign('/docs') },
        // The page forgets in any case; a platform that is away forgets when the session runs out.
        { label: 'Log out', onSelect: () => void session.leave().catch(() => {}) },
      ]}
    />
  );
};
