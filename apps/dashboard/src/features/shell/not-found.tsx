// Page shown for an unknown path of the dashboard.
import { Link } from '@tanstack/react-router';
import { buttonClass } from '../../ui/button.tsx';
import { PageHead } from '../../ui/page-head.tsx';

export const NotFound = () => (
  <>
    <PageHead title="Page not found" description="There's no page at this address." />
    <Link to="/" className={buttonClass('secondary')}>
      Go to overview
    </Link>
  </>
);
