/** Short news at the corner: what was done, or what failed and what to do about it. */
import { Toast } from '@base-ui/react/toast';
import { useMemo, type ReactElement, type ReactNode } from 'react';
import { asApiError } from '../api/api-error.ts';
import { IconButton } from './button.tsx';
import styles from './toast.module.css';

const shownMs = 5_000;
const errorShownMs = 12_000;

export function ToastProvider({ children }: { children: ReactNode }): ReactElement {
  return (
    <Toast.Provider timeout={shownMs} limit={3}>
      {children}
      <Toast.Portal>
        <Toast.Viewport className={styles.viewport}>
          <ToastList />
        </Toast.Viewport>
      </Toast.Portal>
    </Toast.Provider>
  );
}

function ToastList(): ReactNode {
  const { toasts } = Toast.useToastManager();
  return toasts.map((toast) => (
    <Toast.Root key={toast.id} toast={toast} className={styles.toast} swipeDirection="right">
      <Toast.Content className={styles.words}>
        <Toast.Title className={styles.title} />
        <Toast.Description className={styles.description} />
      </Toast.Content>
      <Toast.Close render={<IconButton icon="close" label="Dismiss" small />} />
    </Toast.Root>
  ));
}

export interface ToastSender {
  done(text: string): void;
  failed(error: unknown): void;
}

export function useToast(): ToastSender {
  const { add } = Toast.useToastManager();
  return useMemo(
    () => ({
      done: (text) => void add({ title: text }),
      failed: (error) => {
        const { message, next } = asApiError(error);
        const texts = { title: message, description: next };
        // Not of a high priority: those are hidden from readers until they have the focus, with their button.
        add({ ...texts, type: 'error', timeout: errorShownMs });
      },
    }),
    [add],
  );
}
