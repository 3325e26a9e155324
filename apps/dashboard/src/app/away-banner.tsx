// Says that the platform is away, for as long as it is.
import { Spinner } from '../ui/spinner.tsx';
import { useIsAway } from './app-context.tsx';

export const AwayBanner = () => {
  const isAway = useIsAway();
  return (
    <div role="status" className="sticky top-0 z-40">
      {isAway && (
        <p className="flex items-center justify-center gap-2.5 border-warn/30 border-b bg-warn-soft px-4 py-2 text-center text-sm text-warn">
          <Spinner />
          <span>The platform cannot be reached. What you see may be old; it is asked again every 2 seconds.</span>
        </p>
      )}
    </div>
  );
};
