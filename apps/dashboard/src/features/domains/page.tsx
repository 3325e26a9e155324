// Page with the account's custom domains and a button to add a domain.
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useApi } from '../../api/app-context.tsx';
import { regionsQuery } from '../../api/queries.ts';
import { isLocalServer } from '../../shared/client-commands.ts';
import { Button } from '../../ui/button.tsx';
import { Icon } from '../../ui/icon.tsx';
import { PageHead } from '../../ui/page-head.tsx';
import { AddDomainDialog } from './add-domain-dialog.tsx';
import { OwnDomainsCard } from './own-domains-card.tsx';

export const DomainsPage = () => {
  const { data: regions, isPending } = useQuery(regionsQuery(useApi()));
  const isLocal = isPending ? undefined : isLocalServer(regions ?? []);
  const [adding, setAdding] = useState(false);
  const add = (
    <Button kind="primary" onClick={() => setAdding(true)}>
      <Icon name="plus" />
      Add domain
    </Button>
  );
  return (
    <>
      <PageHead
        title="Domains"
        description="Use your own domains, such as shop.example.com, for tunnels."
        // The button is invisible but takes up space until the page knows whether to show it.
        {...(isLocal === true
          ? {}
          : { actions: <span className={isLocal === undefined ? 'invisible' : ''}>{add}</span> })}
      />
      <OwnDomainsCard add={add} isLocal={isLocal} />
      <AddDomainDialog open={adding} onClose={() => setAdding(false)} />
    </>
  );
};
