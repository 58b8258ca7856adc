"""What every namespace is given: the ServiceAccount ``default`` and the ConfigMap ``kube-root-ca.crt``."""

from __future__ import annotations

from kubemini.controllers.service_accounts.controller import RootCertificates, ServiceAccountsController
from kubemini.runtime.controller import Controller
from kubemini.runtime.settings import Settings


def create(settings: Settings) -> list[Controller]:
    """Build both loops."""
    return [ServiceAccountsController(), RootCertificates(settings.root_certificate)]
