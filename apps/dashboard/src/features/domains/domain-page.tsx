// Page of a custom domain: its state, the DNS records to set, its certificate, and the command that uses the domain.
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import type { OwnDomainView } from '@tunnel/contract';
import { useState } from 'react';
import { useApi } from '../../api/app-context.tsx';
import { tunnelCommand } from '../../shared/client-commands.ts';
import { InstallClient } from '../../shared/install-client.tsx';
import { Loaded } from '../../shared/panel-boundary.tsx';
import { Badge, Notice } from '../../ui/badge.tsx';
import { Button, buttonClass, CopyButton } from '../../ui/button.tsx';
import { Card, Skeleton } from '../../ui/card.tsx';
import { CommandLine, Empty } from '../../ui/empty-state.tsx';
import { Icon } from '../../ui/icon.tsx';
import { useKeys } from '../../ui/keyboard.ts';
import { PageHead } from '../../ui/page-head.tsx';
import { CertificateCard } from './certificate-card.tsx';
import { DomainPath } from './domain-path.tsx';
import { adviceOf, stateOf } from './own-domain-texts.ts';
import { domainQuery, domainWords, hrefOf, isGone } from './own-domains.ts';
import { RecordsCard } from './records-card.tsx';
import { RemoveDomainDialog } from './remove-domain-dialog.tsx';

export const DomainPage = () => {
  const { id } = useParams({ from: '/shell/domains/$id' });
  const navigate = useNavigate();
  const domain = useQuery(domainQuery(useApi(), id));
  // The domain may have been removed in another tab while its page is open here.
  const gone = isGone(domain.error);
  useKeys({ onEscape: () => void navigate({ to: '/domains' }) });
  return (
    <>
      <PageHead
        title={domain.data?.name ?? 'Domain'}
        above={
          <Link
            to="/domains"
            className="mb-2 inline-flex items-center gap-1 rounded-sm text-muted text-sm hover:text-ink"
          >
            <Icon name="back" className="size-3.5" />
            Domains
          </Link>
        }
        {...(domain.data === undefined || gone ? {} : { actions: <HeadActions domain={domain.data} /> })}
      />
      {gone ? (
        <NoDomain />
      ) : (
        <Loaded query={domain} title="Couldn't load this domain" pending={<Pending />}>
          {(one) => <DomainPanels key={one.id} domain={one} />}
        </Loaded>
      )}
    </>
  );
};

const DomainPanels = ({ domain }: { readonly domain: OwnDomainView }) => {
  const records = <RecordsCard domain={domain} />;
  const isReady = adviceOf(domain) === null;
  return (
    <div className="space-y-6">
      <Card>
        <DomainPath domain={domain} />
      </Card>
      <AdviceNotice domain={domain} />
      {/* The card with the user's next step comes first. */}
      {isReady ? <UseCard domain={domain} /> : records}
      <CertificateCard domain={domain} />
      {isReady ? records : <UseCard domain={domain} />}
    </div>
  );
};

/** Advice about the domain's problem. The container is always rendered, so that screen readers announce new advice. */
const AdviceNotice = ({ domain }: { readonly domain: OwnDomainView }) => {
  const advice = adviceOf(domain);
  return (
    <div role="status" className="empty:hidden">
      {advice !== null && (
        <Notice tone={advice.tone}>
          <p className="font-medium">{advice.title}</p>
          <p className="wrap-anywhere text-muted">{advice.text}</p>
        </Notice>
      )}
    </div>
  );
};

const HeadActions = ({ domain }: { readonly domain: OwnDomainView }) => {
  const navigate = useNavigate();
  const [removing, setRemoving] = useState(false);
  const { tone, short } = stateOf(domain);
  const href = hrefOf(domain);
  return (
    <>
      <span className="flex flex-wrap items-center gap-2">
        <Badge tone={tone}>{short}</Badge>
        {href !== null && (
          <a href={href} target="_blank" rel="noreferrer" className={buttonClass('secondary', 'small')}>
            <Icon name="outside" />
            Open
          </a>
        )}
        {href !== null && <CopyButton text={href} label="Copy URL" showLabel />}
        <Button size="small" kind="quiet" onClick={() => setRemoving(true)}>
          Remove
        </Button>
      </span>
      <RemoveDomainDialog
        domain={removing ? domain : null}
        onClose={() => setRemoving(false)}
        onRemoved={() => void navigate({ to: '/domains', replace: true })}
      />
    </>
  );
};

const UseCard = ({ domain: { name, state } }: { readonly domain: OwnDomainView }) => (
  <Card
    title="Use this domain"
    description={
      state === 'verified'
        ? 'Run this on the computer with your service. Replace 3000 with the port of the service.'
        : 'Once the domain is verified, run this on the computer with your service.'
    }
  >
    <div className="space-y-3">
      <CommandLine command={tunnelCommand(domainWords(name))} label="Copy the command" />
      <InstallClient />
    </div>
  </Card>
);

const NoDomain = () => (
  <Card padded={false}>
    <Empty
      icon="domains"
      title="Domain not found"
      action={
        <Link to="/domains" className={buttonClass('secondary')}>
          Show all domains
        </Link>
      }
    >
      <p>The domain was removed or belongs to another account.</p>
    </Empty>
  </Card>
);

const Pending = () => (
  <div className="space-y-6" aria-hidden="true">
    <Skeleton className="h-28 w-full" />
    <Skeleton className="h-60 w-full" />
    <Skeleton className="h-44 w-full" />
  </div>
);
