/** Starts the dashboard in the page. */
import { QueryClientProvider } from '@tanstack/react-query';
import { CSPProvider } from '@base-ui/react/csp-provider';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { createQueryClient } from './api/query-client.ts';
import { fetchSession } from './api/session.ts';
import { App } from './app.tsx';
import { LeaveGuard } from './components/leaving.tsx';
import { prefetch } from './components/once.ts';
import { ToastProvider } from './components/toast.tsx';
import { pageOf } from './pages/pages.ts';
import { applyTheme, readTheme } from './shell/theme.ts';
import { restoreAddress } from './shell/wanted-address.ts';
import './styles/tokens.css';
import './styles/base.css';

applyTheme(readTheme());
restoreAddress();
const client = createQueryClient();
// Session and code of the page are fetched in parallel, before the first render.
void client.prefetchQuery(fetchSession);
const page = pageOf(location.pathname);
if (page !== undefined) prefetch(page.load);
const root = document.getElementById('root');
if (root === null) throw new Error('index.html has no element "root"');
createRoot(root).render(
  <StrictMode>
    <CSPProvider disableStyleElements>
      <QueryClientProvider client={client}>
        <ToastProvider>
          <LeaveGuard>
            <App />
          </LeaveGuard>
        </ToastProvider>
      </QueryClientProvider>
    </CSPProvider>
  </StrictMode>,
);
