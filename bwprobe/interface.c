#include "bwprobe/interface.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VARIABLE "NCCL_SOCKET_IFNAME"

bool interface_matches (const char *nccl_list, const char *name)
{
    bool unwanted = *nccl_list == '^', whole, found = false;

    nccl_list += unwanted;
    whole = *nccl_list == '=';
    nccl_list += whole;
    while (*nccl_list) {
        size_t n = strcspn (nccl_list, ",");

        if (n > 0 && strncmp (nccl_list, name, n) == 0 && (!whole || name[n] == '\0'))
            found = true;
        nccl_list += n + (nccl_list[n] == ',');
    }
    return found != unwanted;
}

/* The user's interface for NCCL, as an address of this machine. */
static bool from_nccl (const char *list, char *address)
{
    struct if_nameindex *all = if_nameindex ();
    struct error err;
    bool found = false;

    for (const struct if_nameindex *i = all; i && i->if_name && !found; i++)
        found = interface_matches (list, i->if_name) &&
                net_own_address (i->if_name, address, &err) == ST_OK;
    if (all)
        if_freenameindex (all);
    return found;
}

enum status interface_settle (const char *asked, char *address, struct error *err)
{
    const char *list = getenv (VARIABLE);
    char name[IF_NAMESIZE], exactly[IF_NAMESIZE + 1];
    enum status st = ST_OK;

    address[0] = '\0';
    if (!asked) {
        if (list && list[0] && !from_nccl (list, address))
            address[0] = '\0';
        return ST_OK;
    }
    st = net_own_address (asked, address, err);
    if (st == ST_OK && !(list && list[0]) && net_interface_of (address, name)) {
        snprintf (exactly, sizeof exactly, "=%s", name);
        setenv (VARIABLE, exactly, 1);
    }
    return st;
}
