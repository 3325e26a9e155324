// Leads to the payment processor's own pages, in place of this one.
import type { ReactNode } from 'react';
import { Button } from '../../ui/button.tsx';
import type { ButtonKind } from '../../ui/button-class.ts';
import { Icon } from '../../ui/icon.tsx';
import { MaybeProblem } from '../../ui/problem.tsx';
import { usePortal } from './use-portal.ts';

export interface PortalButtonProps {
  readonly kind?: ButtonKind;
  readonly children: ReactNode;
}

export const PortalButton = ({ kind = 'secondary', children }: PortalButtonProps) => {
  const portal = usePortal();
  return (
    <div className="space-y-3">
      <Button kind={kind} pending={portal.isPending} onClick={portal.open}>
        {children}
        <Icon name="outside" />
      </Button>
      <MaybeProblem error={portal.error} />
    </div>
  );
};
